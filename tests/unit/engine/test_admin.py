"""What operators do to jobs, one by one or many at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobline_server.engine.decide import admin
from jobline_server.engine.decide.admin import (
    decide_age_out,
    decide_cancel,
    decide_delete_ended,
    decide_delete_waiting,
    decide_evict,
    decide_pass_over,
    decide_promote,
    decide_retry,
)
from jobline_server.engine.decide.queues import decide_delete_queue
from jobline_server.engine.endings import EndedChange
from jobline_server.engine.entries import JobsCancelled, JobsDeleted
from jobline_server.engine.operations import CancelledRuns
from jobline_server.engine.values import AckLevel, JobState, LeaseReason, RevokeReason
from tests.unit.engine.dependents import child
from tests.unit.engine.effects_of import revoked_in, take_endings
from tests.unit.engine.world import World


def test_promoted_jobs_are_ready_in_the_order_of_the_list(world):
    """Also where some of them are never written, and are told of in facts of their own."""
    one = world.row(delay_ms=5_000)
    volatile = world.row(delay_ms=5_000, level=AckLevel.MEMORY)
    last = world.row(delay_ms=5_000)
    assert decide_promote(world.shard, world.now, [last, volatile, one, last]) == []
    world.commit()
    assert world.ids() == [last, volatile, one]


def test_job_named_twice_is_put_back_once(world):
    """The second time it is live already."""
    job_id = world.row()
    world.ack([(job_id, world.one().delivery)])
    state, record = world.ended()[job_id]
    assert decide_retry(world.shard, world.now, [(record, state)] * 2) == [job_id]
    world.commit()
    assert world.ids() == [job_id]
    world.check()


def test_promoted_member_of_a_delayed_lot_leaves_it(world):
    first_id = world.plain(b"1", b"2", delay_ms=5_000).first_id
    assert decide_promote(world.shard, world.now, [first_id, 4711]) == [4711]
    world.commit()
    assert world.counts() == (1, 1, 0)
    assert world.ids() == [first_id]
    world.tick(5_000)
    assert world.ids() == [first_id + 1]
    world.check()


def test_job_that_does_not_wait_for_its_time_is_not_promoted(world):
    job_id = world.row()
    assert decide_promote(world.shard, world.now, [job_id]) == [job_id]


def test_waiting_jobs_are_cancelled_at_once(world):
    first_id = world.plain(b"1", b"2", b"3", b"4").first_id
    single, delayed = world.row(), world.plain(b"5", delay_ms=5_000).first_id
    ids = [delayed, first_id + 2, single, first_id + 1, 4711]
    assert decide_cancel(world.shard, world.now, ids) == (4, 0, [4711])
    world.commit()
    assert sorted(world.ended()) == sorted(ids[:-1])
    assert world.ids() == [first_id, first_id + 3]
    world.check()


def test_neighbours_are_cancelled_as_runs(world):
    """A million cancelled jobs are not a million runs."""
    first_id = world.plain(*[b"x"] * 6).first_id
    other = world.plain(*[b"x"] * 2).first_id
    single = world.row()
    ids = [first_id + i for i in (3, 1, 2, 5)] + [other, single]
    decide_cancel(world.shard, world.now, ids)
    fact = world.commit()[0]
    assert isinstance(fact, JobsCancelled)
    runs = list(zip(fact.starts, fact.counts, strict=True))
    assert runs == [(first_id + 1, 3), (first_id + 5, 1), (other, 1), (single, 1)]


def test_workers_of_active_jobs_are_asked_to_stop(world):
    first_id = world.plain(b"1", b"2").first_id
    holder = world.session()
    delivery = world.lease(holder=holder).runs[0].delivery
    assert decide_cancel(world.shard, world.now, [first_id]) == (0, 1, [])
    assert revoked_in(world.shard) == [(holder, first_id, delivery, RevokeReason.CANCELLED)]
    assert world.state(first_id) is JobState.ACTIVE


def test_volatile_jobs_are_cancelled_and_deleted_without_a_fact(world):
    waiting, other = (world.row(level=AckLevel.MEMORY) for _ in range(2))
    active = world.ids(1)[0]
    assert active == waiting
    recorded = len(world.journal)
    assert decide_cancel(world.shard, world.now, [active]) == (0, 1, [])
    assert decide_delete_waiting(world.shard, world.now, [other]) == (1, [])
    assert (world.commit(), len(world.journal)) == ([], recorded)


def test_waiting_jobs_are_deleted_without_a_trace(world):
    first_id = world.plain(b"1", b"2", b"3").first_id
    single, delayed = world.row(), world.row(delay_ms=5_000)
    active = world.row(priority=9)
    world.lease(1)
    ids = [first_id + 1, single, delayed, active, 4711]
    assert decide_delete_waiting(world.shard, world.now, ids) == (3, [active, 4711])
    world.commit()
    assert world.ended() == {}
    assert world.ids() == [first_id, first_id + 2]
    world.check()


def ended_job(world, **options):
    """A job that died, and its record."""
    job_id = world.row(max_attempts=1, **options)
    world.fail(job_id, world.one().delivery)
    state, record = world.ended()[job_id]
    return record, state


def test_ended_job_comes_back_with_a_clean_slate_and_a_counter_that_grows_on(world):
    record, state = ended_job(world, key="k")
    assert decide_retry(world.shard, world.now, [(record, state)]) == []
    world.commit()
    assert world.queue().kept() == {}
    job = world.one()
    assert (job.id, job.attempt, job.reason) == (record.id, 1, LeaseReason.RETRY)
    assert (job.delivery, job.job_key) == (record.delivery + 1, "k")
    assert len(world.shard.jobs[record.id].details.history) == 1


def test_live_job_is_not_put_back(world):
    record, state = ended_job(world)
    decide_retry(world.shard, world.now, [(record, state)])
    assert decide_retry(world.shard, world.now, [(record, state)]) == [record.id]
    assert decide_retry(world.shard, world.now, []) == []


def test_retried_job_has_the_checkpoint_it_had(world):
    record, state = ended_job(world)
    decide_retry(world.shard, world.now, [(replace(record, worker_checkpoint=b"c"), state)])
    world.commit()
    assert world.one().worker_checkpoint == b"c"


def put_back(world, record, state):
    assert decide_retry(world.shard, world.now, [(record, state)]) == [record.id]


def make_stale(world, record, state):
    decide_age_out(world.shard, world.now, "q", state, [(record.id, 1)])


def delete(world, record, state):
    decide_delete_ended(world.shard, world.now, "q", state, [(record.id, 1)])


@pytest.mark.parametrize("change", [put_back, make_stale, delete])
def test_what_a_deleted_queue_left_is_nobodys(world, change):
    """Somebody looked at an ended job, and its queue was deleted, and made again, before it was
    changed.
    """
    record, state = ended_job(world)
    decide_delete_queue(world.shard, world.now, "q", force=False)
    world.commit()
    change(world, record, state)
    assert world.commit() == []
    ended_job(world)
    change(world, record, state)
    assert world.commit() == []
    assert world.queue().kept() == {state: 1}


def test_ended_jobs_become_stale_and_are_deleted(world):
    record, state = ended_job(world)
    runs = [(record.id, 1)]
    decide_age_out(world.shard, world.now, "q", state, runs)
    assert world.queue().kept() == {JobState.STALE: 1}
    decide_delete_ended(world.shard, world.now, "q", JobState.STALE, runs)
    assert world.queue().kept() == {}
    changes = [ending for ending in take_endings(world.shard) if isinstance(ending, EndedChange)]
    assert [change.state for change in changes] == [JobState.STALE, None]


def test_ended_jobs_that_their_queue_has_no_room_for_are_deleted_as_evicted(world):
    record, state = ended_job(world)
    decide_evict(world.shard, world.now, "q", state, [(record.id, 1)])
    assert world.queue().kept() == {}
    [fact] = world.commit()
    assert isinstance(fact, JobsDeleted)
    assert fact.evicted


def test_cancelled_jobs_that_can_be_put_back_are_told_with_their_times(world):
    """Not those that were BLOCKED, nor those that are in no journal."""
    ready = [world.row(), world.row()]
    later = world.row(delay_ms=5_000)
    volatile = world.row(level=AckLevel.MEMORY)
    blocked = world.push(jobs=[child(ready[0])]).first_id
    runs = CancelledRuns()
    ids = [*ready, later, volatile, blocked]
    assert decide_cancel(world.shard, world.now, ids, runs) == (5, 0, [])
    due_ms = world.now.wall_ms + 5_000
    assert runs.jobs().runs == ((ready[0], 2, 0), (later, 1, due_ms))


def test_what_is_passed_over_is_stale_and_due_at_once(world):
    record, state = ended_job(world)
    decide_pass_over(world.shard, world.now, "q", state, [(record.id, 1)])
    assert world.queue().kept() == {JobState.STALE: 1}
    *_, change = take_endings(world.shard)
    assert change.delete_ms == world.now.wall_ms


def test_retention_of_nothing_or_of_a_queue_that_went_is_no_fact(world):
    world.row()
    decide_age_out(world.shard, world.now, "q", JobState.DEAD, [])
    decide_age_out(world.shard, world.now, "gone", JobState.DEAD, [(1, 1)])
    decide_pass_over(world.shard, world.now, "gone", JobState.DEAD, [(1, 1)])
    decide_delete_ended(world.shard, world.now, "q", JobState.DEAD, [])
    decide_delete_ended(world.shard, world.now, "gone", JobState.DEAD, [(1, 1)])
    assert world.commit() == []


def test_owner_of_a_job_that_is_not_live_is_a_bug():
    with pytest.raises(LookupError):
        admin._owner(World().shard, 4711)
