"""Many leases that end at once."""

from __future__ import annotations

import pytest

from jobline_server.engine import limits

LEASE_MS = 30_000


def test_leases_of_many_workers_end_some_workers_at_a_time(
    world, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pool that dies must not keep the loop from those that live."""
    monkeypatch.setattr(limits, "SLICE_ITEMS", 5)
    world.plain(*[b"x"] * 12)
    for name in ("w1", "w2", "w3", "w4"):
        world.lease(3, holder=world.session(name))
    queue = world.shard.queues["q"]
    assert world.tick(2 * LEASE_MS)
    assert (queue.ready, queue.active) == (6, 6)
    assert not world.tick()
    assert (queue.ready, queue.active) == (12, 0)
    assert not world.tick(LEASE_MS)
    world.check()


def test_workers_that_were_heard_are_looked_at_later(
    world, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are due all the same, and nothing of theirs ends."""
    monkeypatch.setattr(limits, "SLICE_ITEMS", 1)
    world.plain(*[b"x"] * 4)
    for name in ("w1", "w2"):
        world.lease(2, holder=world.session(name))
    world.advance(LEASE_MS - 1_000)
    for name in ("w1", "w2"):
        world.session(name)
    assert world.tick(2_000)
    assert not world.tick()
    assert world.shard.queues["q"].active == 4
    world.tick(LEASE_MS)
    world.tick()
    assert world.shard.queues["q"].active == 0
