"""Facts that bring jobs in, and make them ready."""

from __future__ import annotations

import pytest

from jobline_server.engine.endings import EndedChange
from jobline_server.engine.entries import (
    JobsPushed,
    JobsReady,
    JobsRetried,
    LotPushed,
)
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.queue_entries import QueueChanged
from jobline_server.engine.records import JobRecord
from jobline_server.engine.states import IllegalMove
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    DEFAULT_SETTINGS,
    Attempt,
    AttemptOutcome,
    JobOptions,
    JobState,
)
from tests.unit.engine.effects_of import take_endings
from tests.unit.engine.world import WALL_MS

MAIL, REPORT = JobOptions(name="mail"), JobOptions(name="report", priority=1)


@pytest.fixture
def shard(world):
    """A shard with an empty queue."""
    world.shard.emit(QueueChanged(WALL_MS, "q", DEFAULT_SETTINGS, created_number=1))
    world.commit()
    return world.shard


def lot(shard, *payloads, **rest):
    first_id = shard.next_id()
    shard.emit(LotPushed(WALL_MS, "q", first_id, DEFAULT_OPTIONS, Payloads.of(payloads), **rest))
    return first_id


def rows(shard, *payloads, options=(DEFAULT_OPTIONS,), **rest):
    first_id = shard.next_id()
    shard.emit(JobsPushed(WALL_MS, "q", first_id, list(options), list(payloads), **rest))
    return first_id


def test_lot_is_one_thing_in_its_lane(world, shard):
    first_id = lot(shard, b"1", b"2")
    [item] = next(iter(world.queue().lanes())).items
    assert (item, item.offset) == (shard.lots.find(first_id + 1), shard.next_offset)
    assert (world.queue().pushed_total, shard.load.live_jobs) == (2, 2)
    assert shard.changes.lots.to_write == {first_id}


def test_delayed_lot_waits_as_one(world, shard):
    first_id = lot(shard, b"1", b"2", run_at_ms=WALL_MS + 5)
    assert (world.counts(), list(shard.delayed)) == ((2, 0, 0), [(WALL_MS + 5, first_id)])


def test_rows_become_objects_in_their_lanes(world, shard):
    first_id = rows(shard, b"1", b"2", b"3", options=[MAIL, REPORT, MAIL])
    lanes = {
        (lane.priority, lane.name): [item.id for item in lane.items]
        for lane in world.queue().lanes()
    }
    assert lanes == {(1, "report"): [first_id + 1], (0, "mail"): [first_id, first_id + 2]}
    assert shard.changes.jobs.to_write == {first_id, first_id + 1, first_id + 2}


def test_rows_that_share_their_options_share_the_object(shard):
    first_id = rows(shard, b"1", b"2", options=[MAIL])
    assert shard.jobs[first_id].options is shard.jobs[first_id + 1].options is MAIL


def test_rows_with_a_time_of_their_own_wait_for_it(world, shard):
    first_id = rows(shard, b"1", b"2", run_at_ms=[WALL_MS + 5, 0])
    assert [shard.state_of(first_id), shard.state_of(first_id + 1)] == [
        JobState.SCHEDULED,
        JobState.READY,
    ]
    assert (world.counts(), list(shard.delayed)) == ((1, 1, 0), [(WALL_MS + 5, first_id)])


def test_volatile_rows_wait_for_no_commit_and_no_checkpoint(shard):
    fact = JobsPushed(WALL_MS, "q", shard.next_id(), [MAIL], [b"1"], volatile=True)
    shard.emit(fact, volatile=True)
    job = shard.jobs[fact.first_id]
    assert (job.volatile, job.offset, shard.changes.jobs.to_write) == (True, 0, set())


def test_keys_and_requests_are_remembered_and_forgotten(shard):
    first_id = rows(shard, b"1", b"2", job_keys=["a", ""], digests=[7, 0], request_hash=b"r" * 16)
    assert (shard.jobs[first_id].job_key, shard.load.keys) == ("a", 1)
    lot(shard, b"3", request_hash=b"r" * 16)
    assert (shard.requests.records[b"r" * 16].count, shard.load.requests) == (3, 1)
    shard.forget_keys(WALL_MS + 90_000_000_000, 9)
    assert (shard.load.keys, shard.load.requests) == (0, 0)


def test_ready_lots_go_before_ready_jobs_of_one_fact(world, shard):
    single = rows(shard, b"1", run_at_ms=[WALL_MS + 1])
    first_id = lot(shard, b"2", b"3", run_at_ms=WALL_MS + 2)
    shard.emit(JobsReady(WALL_MS, "q", [single], [first_id]))
    world.commit()
    assert world.ids() == [first_id, first_id + 1, single]


@pytest.mark.parametrize("promoted", [False, True])
def test_job_that_waits_for_no_time_cannot_become_ready(shard, promoted):
    single, first_id = rows(shard, b"1"), lot(shard, b"2")
    with pytest.raises(IllegalMove, match=f"job {single} in READY cannot be"):
        shard.emit(JobsReady(WALL_MS, "q", [single], [], promoted))
    with pytest.raises(IllegalMove, match=f"job {first_id} in READY cannot be"):
        shard.emit(JobsReady(WALL_MS, "q", [], [first_id], promoted))


def test_retried_job_keeps_its_history_and_checkpoint(world, shard):
    attempt = Attempt(1, 2, "w1", 3, 4, AttemptOutcome.FAILED)
    record = JobRecord(shard.next_id() - 1, "q", MAIL, b"x", 5, "k", delivery=9, history=(attempt,))
    record.worker_checkpoint = b"c"
    shard.emit(JobsRetried(WALL_MS, [record], [JobState.DEAD]))
    job = shard.jobs[record.id]
    assert (job.delivery, job.job_key, job.details.history) == (9, "k", (attempt,))
    assert (job.details.worker_checkpoint, world.queue().kept()) == (b"c", {JobState.DEAD: -1})
    assert take_endings(shard) == [EndedChange(None, [record.id], [1], WALL_MS)]


def test_retried_job_without_a_past_shares_the_details_of_all(shard):
    record = JobRecord(shard.next_id() - 1, "q", MAIL, b"x", 5)
    with pytest.raises(IllegalMove, match="in READY cannot be retried by hand"):
        shard.emit(JobsRetried(WALL_MS, [record], [JobState.READY]))
    assert shard.jobs == {}
    shard.emit(JobsRetried(WALL_MS, [record], [JobState.STALE]))
    assert shard.jobs[record.id].details.history == ()
