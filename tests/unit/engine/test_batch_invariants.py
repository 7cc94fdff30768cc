"""The invariants of batches notice when they are broken."""

from __future__ import annotations

import pytest

from jobline_server.engine.batch_invariants import batches_are_where_they_stand, members_add_up
from tests.unit.engine.batch_words import close, created, member


@pytest.fixture
def batch(world):
    """A batch with a member, found right."""
    made = created(world)
    world.plain(b"a", options=member(made))
    assert (members_add_up(world.shard), batches_are_where_they_stand(world.shard)) == ("", "")
    return made


def test_members_that_are_not_counted_are_noticed(world, batch):
    world.shard.batches.live[batch.id] = 2
    assert "counted are" in members_add_up(world.shard)


def test_a_batch_that_is_complete_too_soon_is_noticed(world, batch):
    batch.completed_ms = world.now.wall_ms
    assert "1 pending" in batches_are_where_they_stand(world.shard)


def test_a_callback_that_would_not_go_is_noticed(world):
    batch = created(world)
    close(world, batch)
    world.shard.batches.due.clear()
    assert "is not known for it" in batches_are_where_they_stand(world.shard)
