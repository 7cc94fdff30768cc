"""Bugs that random histories or readers found, each told in its shortest form."""

from __future__ import annotations

import pytest

from jobline_server.engine import invariants
from jobline_server.engine.commands import FailItem, Push
from jobline_server.engine.decide.lease import decide_lease
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.queues import known_queue
from jobline_server.engine.decide.settle import decide_fail
from jobline_server.engine.entries import JobDied
from jobline_server.engine.holder import Holder
from jobline_server.engine.load import Load
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.shard import Shard
from jobline_server.engine.states import IllegalMove
from jobline_server.engine.values import (
    DEFAULT_OPTIONS,
    AckLevel,
    EndReason,
    FailAction,
    JobError,
    JobState,
    Now,
)
from tests.pushed_rows import NewJob, rows_of
from tests.shard_image import image_of

NOW = Now(wall_ms=1_800_000_000_000, mono_ms=1_000)


@pytest.fixture
def shard():
    return Shard(0, epoch=7, load=Load())


def commit(shard):
    """What was decided is on disk."""
    facts = shard.take_entries()
    shard.committed = shard.next_offset - 1
    return facts


def lease(shard, holder, max_jobs=10):
    return decide_lease(
        shard,
        NOW,
        shard.queues["q"],
        holder,
        max_jobs=max_jobs,
        max_bytes=1_000,
        names=None,
        lease_ms=0,
    )


def test_key_of_a_volatile_job_is_not_kept(shard):
    """A job that is never written goes with the process; its key must not outlive it, or the push
    that replaces it would be answered with an id that no longer stands for anything.
    """
    rows = rows_of([NewJob(b"x", DEFAULT_OPTIONS, "key")])
    push = Push("q", DEFAULT_OPTIONS, rows, level=AckLevel.MEMORY)
    first = decide_push(shard, NOW, push)
    assert not shard.keys.unsaved
    assert not image_of(shard)["keys"]
    again = decide_push(shard, NOW, push)
    assert again.exceptions[0][2] == first.first_id


def test_member_of_a_lot_that_is_failed_for_good_is_cancelled(shard):
    """`then: CANCEL` ends a leased member of a lot like any other job."""
    decide_push(shard, NOW, Push("q", DEFAULT_OPTIONS, payloads=Payloads.of([b"a", b"b"])))
    commit(shard)
    run = lease(shard, Holder("w", "")).runs[0]
    item = FailItem(run.first_id, run.delivery, JobError("Boom"), FailAction.CANCEL)
    (result,) = decide_fail(shard, NOW, [item])
    assert result.state is JobState.CANCELLED
    assert shard.state_of(run.first_id) is None
    assert shard.queues["q"].kept() == {JobState.CANCELLED: 1}
    invariants.check(shard)


def test_fact_that_cannot_be_applied_is_not_recorded(shard):
    """A journal that held it could never be recovered from."""
    known_queue(shard, NOW, "q")
    commit(shard)
    with pytest.raises(IllegalMove):
        shard.emit(JobDied(NOW.wall_ms, 99, EndReason.EXPLICIT_FAIL, None))
    assert commit(shard) == []


def test_session_that_returned_is_not_forgotten_with_the_holder_it_had_before(world):
    """The wheel still looks at the earlier one, which somebody may remember for long."""
    first, second = world.row(), world.row()
    earlier = world.session()
    world.ack([(first, world.one(holder=earlier).delivery)])
    world.shard.clocks.disconnect(world.now, earlier, grace_ms=15_000)
    later = world.session()
    delivery = world.one(holder=later).delivery
    for _ in range(3):
        world.advance(15_000)
        later.last_seen_ms = world.now.mono_ms
        world.tick()
    assert world.shard.clocks.holders == {later.session_id: later}
    assert list(later.held()) == [(second, delivery)]
