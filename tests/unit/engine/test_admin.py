"""What operators do to jobs, one by one or many at a time."""

from __future__ import annotations

from jobline_server.engine.decide.admin import decide_promote, decide_retry
from jobline_server.engine.values import AckLevel


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
