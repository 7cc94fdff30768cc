"""Facts of BLOCKED jobs: pushed as such, and unblocked."""

from __future__ import annotations

import pytest

from jobline_server.engine.blocked_entries import JobsUnblocked
from jobline_server.engine.decide.admin import decide_cancel, decide_delete_waiting, decide_promote
from jobline_server.engine.decide.queues import decide_delete_queue
from jobline_server.engine.entries import JobsPushed
from jobline_server.engine.queue_entries import QueueChanged
from jobline_server.engine.states import IllegalMove
from jobline_server.engine.values import DEFAULT_OPTIONS, DEFAULT_SETTINGS, JobState
from tests.shard_image import image_of
from tests.unit.engine.world import WALL_MS

LATER_MS = WALL_MS + 60_000


@pytest.fixture
def shard(world):
    """A shard with an empty queue."""
    world.shard.emit(QueueChanged(WALL_MS, "q", DEFAULT_SETTINGS, created_number=1))
    world.commit()
    return world.shard


def push_blocked(shard, *payloads, blocked=(0,), run_at_ms=()):
    first_id = shard.next_id()
    fact = JobsPushed(WALL_MS, "q", first_id, [DEFAULT_OPTIONS], list(payloads))
    fact.blocked, fact.run_at_ms = list(blocked), list(run_at_ms)
    shard.emit(fact)
    return first_id


def counts(shard):
    of_queue = shard.queues["q"].counts
    return [of_queue[state] for state in (JobState.SCHEDULED, JobState.BLOCKED, JobState.READY)]


def test_some_jobs_of_a_push_are_blocked(world, shard):
    first_id = push_blocked(shard, b"a", b"b", b"c", blocked=[0, 2])
    world.commit()
    assert counts(shard) == [0, 2, 1]
    assert world.ids() == [first_id + 1]
    world.check()


def test_jobs_with_times_of_their_own_beside_blocked_ones(world, shard):
    first_id = push_blocked(shard, b"a", b"b", b"c", blocked=[1], run_at_ms=[LATER_MS, LATER_MS, 0])
    assert counts(shard) == [1, 1, 1]
    assert shard.jobs[first_id + 1].run_at_ms == LATER_MS
    world.check()


def test_unblocked_job_is_ready_at_the_tail_and_waits_for_its_commit(world, shard):
    """G13: what unblocks it must be on disk before it is handed out."""
    first_id = push_blocked(shard, b"a", b"b", blocked=[0])
    world.commit()
    shard.emit(JobsUnblocked(WALL_MS + 5, "q", [first_id]))
    assert shard.jobs[first_id].offset == shard.next_offset
    assert shard.jobs[first_id].ready_ms == WALL_MS + 5
    world.commit()
    assert world.ids() == [first_id + 1, first_id]
    world.check()


def test_unblocked_job_waits_for_its_time(world, shard):
    first_id = push_blocked(shard, b"a", run_at_ms=[LATER_MS])
    fact = JobsUnblocked(WALL_MS, "q", [first_id])
    shard.emit(fact)
    assert (world.state(first_id), fact.run_at_ms) == (JobState.SCHEDULED, [LATER_MS])
    world.tick(60_000)
    assert world.ids() == [first_id]
    world.check()


def test_blocked_job_whose_time_has_passed_is_ready(world, shard):
    first_id = push_blocked(shard, b"a", run_at_ms=[LATER_MS])
    shard.emit(JobsUnblocked(LATER_MS, "q", [first_id]))
    world.commit()
    assert world.ids() == [first_id]
    world.check()


def test_only_a_blocked_job_is_unblocked(world, shard):
    first_id = push_blocked(shard, b"a", b"b")
    with pytest.raises(IllegalMove, match=f"job {first_id + 1} in READY cannot be unblocked"):
        shard.emit(JobsUnblocked(WALL_MS, "q", [first_id + 1]))


def test_blocked_jobs_are_cancelled_deleted_and_not_promoted(world, shard):
    first_id = push_blocked(shard, b"a", b"b", b"c", blocked=[0, 1, 2])
    assert decide_promote(shard, world.now, [first_id]) == [first_id]
    assert decide_cancel(shard, world.now, [first_id]) == (1, 0, [])
    assert decide_delete_waiting(shard, world.now, [first_id + 1]) == (1, [])
    assert counts(shard) == [0, 1, 0]
    world.check()
    assert decide_delete_queue(shard, world.now, "q", force=False) == 2
    assert shard.load.live_jobs == 0
    world.check()


def test_a_journal_of_blocked_jobs_yields_the_same_shard(world, shard):
    first_id = push_blocked(shard, b"a", b"b", blocked=[0, 1])
    shard.emit(JobsUnblocked(WALL_MS, "q", [first_id]))
    world.commit()
    assert image_of(world.recovered()) == image_of(shard)
