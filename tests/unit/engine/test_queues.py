"""Queues come, change, pause and go."""

from __future__ import annotations

from jobline_server.engine.decide.queues import decide_vanish
from jobline_server.engine.values import JobOptions, Retention

HOUR_MS = 3_600_000


def test_queue_vanishes_an_hour_after_its_last_job_and_not_at_once(world):
    """A job that took longer than an hour does not take its queue away as it ends."""
    options = JobOptions(lease_ms=10 * HOUR_MS, retention=Retention(remove_on_complete=True))
    world.plain(b"x", options=options)
    leased = world.lease().runs[0]
    world.advance(2 * HOUR_MS)
    assert decide_vanish(world.shard, world.now) == 0
    world.ack([(leased.first_id, leased.delivery)])
    world.advance(60_000)
    assert decide_vanish(world.shard, world.now) == 0
    world.advance(HOUR_MS)
    assert decide_vanish(world.shard, world.now) == 1
    assert "q" not in world.shard.queues
