"""Facts of hand-outs, and of jobs that come back unfinished."""

from __future__ import annotations

import pytest

from jobline_server.engine.entries import (
    CancelRequested,
    JobFailed,
    JobsLeased,
    JobsReleased,
    JobsStalled,
)
from jobline_server.engine.holder import Holder
from jobline_server.engine.report_entries import JobReported
from jobline_server.engine.states import IllegalMove
from jobline_server.engine.values import (
    AttemptOutcome,
    EndReason,
    JobState,
    LeaseReason,
    ReleaseReason,
    RevokeReason,
)
from tests.unit.engine.effects_of import revoked_in
from tests.unit.engine.world import ERROR, FIRST_DELIVERY, WALL_MS

READY, ACTIVE, SCHEDULED = JobState.READY, JobState.ACTIVE, JobState.SCHEDULED


def lease(world, *runs, holder=None, session="s1") -> None:
    """Hands out runs of (first id, count)."""
    starts, counts = [start for start, _ in runs], [count for _, count in runs]
    deliveries = [FIRST_DELIVERY] * len(runs)
    fact = JobsLeased(WALL_MS, "q", "w1", session, 0, starts, counts, deliveries, holder=holder)
    world.shard.emit(fact)


def failed(job_id: int, run_at_ms: int = 0) -> JobFailed:
    return JobFailed(WALL_MS, job_id, run_at_ms, ERROR, "q", "", FIRST_DELIVERY, 1, "w1")


@pytest.fixture
def active(world):
    """Two members of a lot and a single job, leased to a session."""
    ids = [world.plain(b"1", b"2").first_id, world.row()]
    lease(world, (ids[0], 2), (ids[1], 1))
    world.check()
    return [ids[0], ids[0] + 1, ids[1]]


def test_recovered_hand_out_finds_the_holder_of_its_session(world, active):
    [holder] = world.shard.clocks.holders.values()
    assert (holder.worker, holder.session_id, len(holder.leases)) == ("w1", "s1", 2)


def test_recovered_hand_out_of_a_pull_has_a_holder_of_its_own(world):
    first, second = world.row(), world.row()
    lease(world, (first, 1), session="")
    lease(world, (second, 1), session="")
    jobs = world.shard.jobs
    assert jobs[first].holder is not jobs[second].holder
    assert world.shard.clocks.holders == {}


def test_single_jobs_and_runs_go_out_in_one_fact(world):
    one, lot, two = world.row(), world.plain(b"1", b"2", b"3").first_id, world.row()
    holder = Holder("w1", "")
    lease(world, (one, 1), (lot, 2), holder=holder)
    assert [world.state(i) for i in (one, lot, lot + 1, lot + 2, two)] == [ACTIVE] * 3 + [READY] * 2
    assert (holder.in_flight.jobs, holder.lease_ms_min) == (3, 30_000)
    world.check()


def test_nothing_but_the_head_of_a_lane_goes_out(world):
    first, second, lot = world.row(), world.row(), world.plain(b"1", b"2").first_id
    with pytest.raises(IllegalMove, match=f"job {second} is not at the head"):
        lease(world, (second, 1))
    with pytest.raises(IllegalMove, match=f"job {lot} is not at the head"):
        lease(world, (lot, 2))
    lease(world, (first, 1), (second, 1))
    with pytest.raises(IllegalMove, match=f"job {lot + 1} is not at the head"):
        lease(world, (lot + 1, 1))
    with pytest.raises(IllegalMove, match=f"job {first} in ACTIVE cannot be leased"):
        lease(world, (first, 1))


def test_hand_out_of_what_is_not_live_is_illegal(world):
    world.row()
    with pytest.raises(IllegalMove, match="lot of 4711 is not live"):
        lease(world, (4711, 1))


def test_hand_out_passes_over_what_was_cancelled(world):
    first, second = world.row(), world.row()
    world.shard.jobs[first].state = JobState.CANCELLED
    lease(world, (second, 1))
    assert world.state(second) is ACTIVE


def test_failed_member_leaves_its_lot_and_waits(world, active):
    world.shard.emit(failed(active[0], WALL_MS + 5))
    job = world.shard.jobs[active[0]]
    assert (job.state, job.run_at_ms, job.attempts) == (SCHEDULED, WALL_MS + 5, 1)
    [attempt] = job.details.history
    assert (attempt.outcome, attempt.error, attempt.worker) == (AttemptOutcome.FAILED, ERROR, "w1")
    world.check()


def test_job_that_failed_and_goes_on_at_once_stands_at_the_tail(world, active):
    other = world.row()
    world.shard.emit(failed(active[2]))
    world.commit()
    assert world.ids() == [other, active[2]]


def test_history_keeps_the_newest_twenty_attempts(world):
    job_id = world.row(max_attempts=0)
    for _ in range(25):
        world.fail(job_id, world.one().delivery, retry_after_ms=0)
    history = world.shard.jobs[job_id].details.history
    assert [attempt.attempt for attempt in history] == list(range(6, 26))


@pytest.mark.parametrize("run_at_ms", [[], [0, 0]])
def test_stalled_jobs_stand_at_the_front_in_their_order(world, active, run_at_ms):
    other = world.row()
    reason = EndReason.STALLED
    world.shard.emit(JobsStalled(WALL_MS, "q", active[:2], run_at_ms, reason, "w1"))
    world.commit()
    assert world.ids() == [*active[:2], other]
    assert world.shard.jobs[active[0]].lease_reason is LeaseReason.STALLED


def test_stalled_and_released_jobs_may_have_to_wait(world, active):
    stalled = JobsStalled(WALL_MS, "q", active[:1], [WALL_MS + 5], EndReason.STALLED, "w1")
    released = JobsReleased(WALL_MS, "q", active[1:], [0, WALL_MS + 9], ReleaseReason.SNOOZE, "w1")
    world.shard.emit(stalled)
    world.shard.emit(released)
    assert [world.state(job_id) for job_id in active] == [SCHEDULED, READY, SCHEDULED]
    assert world.shard.jobs[active[1]].releases == 1
    world.check()


@pytest.mark.parametrize(
    "fact",
    [
        failed,
        lambda job_id: JobsStalled(WALL_MS, "q", [job_id], [], EndReason.STALLED, "w1"),
        lambda job_id: JobsReleased(WALL_MS, "q", [job_id], [], ReleaseReason.SNOOZE, "w1"),
    ],
)
def test_job_that_is_not_active_cannot_come_back_and_stays_as_it_was(world, fact):
    job_id = world.row()
    with pytest.raises(IllegalMove, match=f"job {job_id} in READY cannot be"):
        world.shard.emit(fact(job_id))
    assert world.shard.jobs[job_id].details.history == ()
    world.check()


def test_report_changes_what_it_names(world, active):
    emit = world.shard.emit
    emit(JobReported(WALL_MS, "q", active[0], 10.0, "a", b"c"))
    emit(JobReported(WALL_MS, "q", active[0], None, None, None))
    details = world.shard.jobs[active[0]].details
    assert (details.progress, details.progress_message, details.worker_checkpoint) == (
        10.0,
        "a",
        b"c",
    )


def test_cancel_is_asked_of_whoever_has_the_job(world, active):
    world.shard.emit(CancelRequested(WALL_MS, "q", active))
    [holder] = world.shard.clocks.holders.values()
    told = [(who, job_id, reason) for who, job_id, _, reason in revoked_in(world.shard)]
    assert told == [(holder, job_id, RevokeReason.CANCELLED) for job_id in active]
    waiting = world.row()
    world.shard.emit(CancelRequested(WALL_MS, "q", [waiting]))
    assert len(revoked_in(world.shard)) == 3


def test_attempt_keeps_the_version_of_its_worker(world):
    """Trial B10: what failed under one version is told from what failed under another."""
    job_id = world.row()
    lease(world, (job_id, 1), holder=Holder("w1", "s1", version="2.1"))
    world.shard.emit(failed(job_id))
    [attempt] = world.shard.jobs[job_id].details.history
    assert (attempt.worker, attempt.version) == ("w1", "2.1")


def test_what_is_out_already_cannot_go_out_again(world):
    """Its lane is gone, or has others at its head."""
    first_id = world.plain(b"1", b"2").first_id
    lease(world, (first_id, 2))
    with pytest.raises(IllegalMove, match="has nothing ready in lane"):
        lease(world, (first_id, 1))
    world.plain(b"3")
    with pytest.raises(IllegalMove, match="not at the head of its lane"):
        lease(world, (first_id, 1))
    world.check()
