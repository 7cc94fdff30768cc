"""Facts that end jobs, and those about ended ones."""

from __future__ import annotations

from array import array

import pytest

from jobline_server.engine.endings import EndedChange, JobsEnded, RunsEnded
from jobline_server.engine.entries import (
    JobDied,
    JobsAgedOut,
    JobsCancelled,
    JobsCompleted,
    JobsDeleted,
)
from jobline_server.engine.states import IllegalMove
from jobline_server.engine.values import (
    AckLevel,
    AttemptOutcome,
    EndReason,
    JobOptions,
    JobState,
    Retention,
)
from jobline_server.engine.wanted import runs_without
from tests.unit.engine.dependents import child, push
from tests.unit.engine.effects_of import take_endings
from tests.unit.engine.world import ERROR, FIRST_DELIVERY, WALL_MS

COMPLETED, CANCELLED, READY = JobState.COMPLETED, JobState.CANCELLED, JobState.READY
REMOVED = Retention(remove_on_complete=True)


@pytest.fixture
def run(world):
    """The first id of four plain jobs that are leased."""
    first_id = world.plain(b"1", b"2", b"3", b"4").first_id
    world.lease()
    return first_id


def complete(world, *runs, results=None):
    """Completes runs of (first id, count); returns the endings."""
    left = results or {}
    starts, counts = [start for start, _ in runs], [count for _, count in runs]
    world.shard.emit(JobsCompleted(WALL_MS, starts, counts, list(left), list(left.values())))
    return take_endings(world.shard)


def test_members_that_completed_share_one_ending(world, run):
    [ended] = complete(world, (run + 2, 1), (run, 1))
    lot = world.shard.lots.find(run)
    expected = RunsEnded(
        lot, COMPLETED, array("q", (run + 2, run)), [1, 1], WALL_MS, FIRST_DELIVERY, "w1", True
    )
    assert ended == expected
    assert (world.counts(), world.queue().kept()) == ((0, 0, 2), {COMPLETED: 2})


def test_leases_of_one_fact_are_told_apart(world, run):
    other = world.plain(b"5").first_id
    world.lease(holder=world.session("w2"))
    endings = complete(world, (run, 4), (other, 1))
    assert [ended.worker for ended in endings] == ["w1", "w2"]
    assert world.shard.lots.lots == {}


def test_member_with_a_result_ends_as_a_job_of_its_own(world, run):
    single, rest = complete(world, (run, 1), (run + 1, 3), results={run: b"r"})
    assert isinstance(single, JobsEnded)
    record = single.record(single.jobs[0])
    assert (record.id, record.result, record.delivery) == (run, b"r", FIRST_DELIVERY)
    assert (record.worker, single.jobs[0].state) == ("w1", COMPLETED)
    assert isinstance(rest, RunsEnded)
    assert (rest.starts.tolist(), rest.counts) == ([run + 1], [3])


def test_members_that_all_left_results_are_no_runs(world, run):
    left = {run + i: b"r" for i in range(4)}
    [ended] = complete(world, *[(run + i, 1) for i in range(4)], results=left)
    assert [job.id for job in ended.jobs] == list(left)


def test_single_jobs_of_one_queue_share_one_ending(world):
    ids = [world.row(), world.row(priority=-1)]
    world.lease()
    [ended] = complete(world, *[(job_id, 1) for job_id in ids])
    assert ([job.id for job in ended.jobs], ended.kept) == (ids, True)
    assert world.shard.changes.jobs.to_write == set()


def test_jobs_that_would_be_removed_are_kept_while_others_wait_for_them(world):
    """Those read the results as they run; a journal that is read again says the same."""
    removal = JobOptions(retention=REMOVED)
    in_lot = world.plain(b"1", b"2", b"3", b"4", options=removal).first_id
    alone, removed = world.row(retention=REMOVED), world.row(retention=REMOVED)
    push(world, child(in_lot + 1, alone))
    world.lease()
    kept, gone, awaited, rest = complete(world, (in_lot, 4), (alone, 1), (removed, 1))
    assert [job.id for job in awaited.jobs] == [in_lot + 1]
    assert (rest.starts.tolist(), rest.counts, rest.kept) == ([in_lot, in_lot + 2], [1, 2], False)
    assert [job.id for job in kept.jobs] == [alone]
    assert [job.id for job in gone.jobs] == [removed]
    assert [(ended.kept, ended.for_readers) for ended in (awaited, kept, gone)] == [
        (True, True),
        (True, True),
        (False, False),
    ]
    assert world.queue().kept() == {COMPLETED: 2}


@pytest.mark.parametrize(
    ("runs", "taken", "left"),
    [
        ([(5, 3)], [], [(5, 3)]),
        ([(5, 3)], [5], [(6, 2)]),
        ([(5, 3)], [5, 6, 7], []),
        ([(5, 3), (9, 1), (20, 4)], [6, 9, 23], [(5, 1), (7, 1), (20, 3)]),
    ],
)
def test_runs_are_cut_where_jobs_are_taken(runs, taken, left):
    starts, counts = runs_without([start for start, _ in runs], [count for _, count in runs], taken)
    assert [*zip(starts, counts, strict=True)] == left


def test_jobs_of_two_queues_have_endings_of_their_own(world):
    ids = [world.row(), world.row(queue="other"), world.row()]
    world.lease()
    world.lease(queue="other")
    endings = complete(world, *[(job_id, 1) for job_id in ids])
    assert [[job.id for job in ended.jobs] for ended in endings] == [[ids[0], ids[2]], ids[1:2]]
    world.check()


def test_jobs_that_are_not_to_be_kept_are_told_of_and_not_counted(world):
    kept, removed = world.row(), world.row(retention=REMOVED)
    member = world.plain(b"1", level=AckLevel.MEMORY).first_id
    world.lease()
    endings = complete(world, (kept, 1), (removed, 1), (member, 1))
    assert [ended.kept for ended in endings] == [True, False, False]
    assert world.queue().kept() == {COMPLETED: 1}


def test_stored_job_that_ended_is_buried(world):
    job_id, first_id = world.row(), world.plain(b"1").first_id
    world.shard.jobs[job_id].stored = world.shard.lots.find(first_id).stored = True
    world.lease()
    complete(world, (job_id, 1), (first_id, 1))
    assert world.shard.changes.jobs.to_delete == [job_id]
    assert world.shard.changes.lots.to_delete == [first_id]


def test_jobs_of_two_holders_free_both_windows(world):
    ids = [world.row(b"1"), world.row(b"22")]
    holders = [world.session("w1"), world.session("w2")]
    for holder in holders:
        world.lease(1, holder=holder)
    complete(world, *[(job_id, 1) for job_id in ids])
    assert [(one.in_flight.jobs, one.in_flight.payload_bytes) for one in holders] == [
        (0, 0),
        (0, 0),
    ]


def test_what_is_not_leased_cannot_complete(world, run):
    ready = world.row()
    with pytest.raises(IllegalMove, match=f"job {ready} in READY cannot be completed"):
        complete(world, (ready, 1))
    with pytest.raises(IllegalMove, match="job 4711 is not leased"):
        complete(world, (4711, 1))
    with pytest.raises(IllegalMove, match="are not leased together"):
        complete(world, (run + 3, 2))
    complete(world, (run, 1))
    with pytest.raises(IllegalMove, match=f"jobs from {run} on are not leased"):
        complete(world, (run, 1))
    world.check()


@pytest.mark.parametrize(
    ("reason", "outcome", "budgets"),
    [
        (EndReason.STALLED, AttemptOutcome.STALLED, (0, 1, 0)),
        (EndReason.WORKER_LOST, AttemptOutcome.STALLED, (0, 1, 0)),
        (EndReason.EXPLICIT_FAIL, AttemptOutcome.FAILED, (1, 0, 1)),
    ],
)
def test_dead_job_used_up_what_it_died_of(world, run, reason, outcome, budgets):
    world.shard.emit(JobDied(WALL_MS, run, reason, ERROR))
    [ended] = take_endings(world.shard)
    record = ended.record(ended.jobs[0])
    assert (record.attempts, record.stalls, world.queue().failed_total) == budgets
    assert (record.reason, record.error, record.history[0].outcome) == (reason, ERROR, outcome)


def test_job_that_waits_cannot_die_and_has_no_new_past(world):
    job_id = world.row()
    with pytest.raises(IllegalMove, match=f"job {job_id} in READY cannot be died"):
        world.shard.emit(JobDied(WALL_MS, job_id, EndReason.STALLED, None))
    assert world.shard.jobs[job_id].details.history == ()


def test_waiting_and_leased_jobs_are_cancelled_in_one_fact(world, run):
    waiting, single = world.plain(b"5", b"6").first_id, world.row()
    fact = JobsCancelled(WALL_MS, [run + 1, waiting, single], [1, 2, 1], [run + 1], [b"r"])
    world.shard.emit(fact)
    ended = world.ended()
    assert {state for state, _ in ended.values()} == {CANCELLED}
    assert {record.reason for _, record in ended.values()} == {EndReason.CANCELLED}
    assert (ended[run + 1][1].result, len(ended)) == (b"r", 4)
    world.check()


def test_delayed_jobs_and_lots_are_cancelled(world):
    first_id, single = world.plain(b"1", b"2", delay_ms=9).first_id, world.row(delay_ms=9)
    world.shard.emit(JobsCancelled(WALL_MS, [first_id, single], [1, 1]))
    assert world.counts() == (1, 0, 0)
    world.check()


@pytest.mark.parametrize(
    "fact", [JobsCancelled, lambda *args: JobsDeleted(args[0], "q", READY, *args[1:])]
)
def test_what_does_not_wait_in_its_lot_cannot_leave_it(world, fact):
    first_id = world.plain(b"1", b"2").first_id
    world.shard.emit(fact(WALL_MS, [first_id], [1]))
    with pytest.raises(IllegalMove, match=f"jobs from {first_id} on do not wait"):
        world.shard.emit(fact(WALL_MS, [first_id], [2]))
    with pytest.raises(IllegalMove, match="job 4711 is not live"):
        world.shard.emit(fact(WALL_MS, [4711], [1]))
    world.check()


def test_waiting_jobs_are_deleted_without_an_ending(world):
    lot, single, delayed = world.plain(b"1", b"2").first_id, world.row(), world.row(delay_ms=9)
    world.shard.emit(JobsDeleted(WALL_MS, "q", READY, [lot + 1, single], [1, 1]))
    world.shard.emit(JobsDeleted(WALL_MS, "q", JobState.SCHEDULED, [delayed], [1]))
    assert (take_endings(world.shard), world.counts()) == ([], (0, 1, 0))
    world.check()


def test_ended_jobs_are_staled_and_deleted_by_number(world, run):
    complete(world, (run, 4))
    world.shard.emit(JobsAgedOut(WALL_MS, "q", COMPLETED, [run], [3], delete_after_ms=7))
    world.shard.emit(JobsDeleted(WALL_MS, "q", JobState.STALE, [run], [2]))
    assert world.queue().kept() == {COMPLETED: 1, JobState.STALE: 1}
    changes = [
        EndedChange(JobState.STALE, [run], [3], WALL_MS, WALL_MS + 7),
        EndedChange(None, [run], [2], WALL_MS),
    ]
    assert take_endings(world.shard) == changes


def test_active_jobs_are_not_staled(world, run):
    with pytest.raises(IllegalMove, match="in ACTIVE cannot be"):
        world.shard.emit(JobsAgedOut(WALL_MS, "q", JobState.ACTIVE, [run], [1]))


def test_jobs_that_wait_are_not_deleted_as_active_ones(world):
    """They have no worker that could be told."""
    for job_id in (world.row(), world.plain(b"1").first_id):
        with pytest.raises(IllegalMove, match=f"job {job_id} is not leased"):
            world.shard.emit(JobsDeleted(WALL_MS, "q", JobState.ACTIVE, [job_id], [1]))
    world.check()
