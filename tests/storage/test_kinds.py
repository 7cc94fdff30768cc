"""The table of durable kinds: all are in it, and a checkpoint takes the notes of each."""

from __future__ import annotations

from dataclasses import fields

from jobline_server.engine.changes import Changes
from jobline_server.storage.checkpoint import Checkpoint
from jobline_server.storage.kinds import KINDS
from jobline_server.storage.store import ItemKind
from tests.storage.recovery_world import World


def test_every_kind_has_a_row() -> None:
    """In the order of loading: what an item names is loaded before it."""
    assert [row.kind for row in KINDS] == list(ItemKind)


def test_changes_of_every_kind_are_taken_and_given_back() -> None:
    """A kind whose changes no row names would be in no checkpoint."""
    world = World()
    noted = {change.name: getattr(world.shard.changes, change.name) for change in fields(Changes)}
    for number, changes in enumerate(noted.values()):
        changes.to_delete.append(number)
    checkpoint = Checkpoint(world.shard, world.segments)
    last = checkpoint.finish()
    assert sorted(key for _, key in last.removals) == list(range(len(noted)))
    checkpoint.abandon()
    assert [changes.to_delete for changes in noted.values()] == [[n] for n in range(len(noted))]
