"""Batches in a checkpoint: they come back as they were, and what was sent is gone."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from jobline.v1 import store_pb2
from jobline_server.engine.batch_entries import BatchCountsSent
from jobline_server.engine.batches import Batch, BatchSpec, MemberEnd
from jobline_server.engine.commands import Push
from jobline_server.engine.decide.batches import (
    decide_close_batch,
    decide_create_batch,
    settle_batches,
)
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.timers import tick
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.values import DEFAULT_OPTIONS
from jobline_server.storage.codec.batches import batch_of
from jobline_server.storage.kinds.batches import encode_batch
from jobline_server.storage.store import ItemKind
from tests.shard_image import image_of
from tests.storage.batch_strategies import batches
from tests.storage.recovery_world import World

ELSEWHERE = 5 << 43 | 9


@given(batches())
def test_batch_comes_back_equal(batch: Batch) -> None:
    back = batch_of(store_pb2.StoredBatch.FromString(encode_batch(batch.id, batch)))
    for name in Batch.__slots__:
        if name not in {"ends", "outcome", "stored"}:
            assert getattr(back, name) == getattr(batch, name)
    assert back.ends.frozen() == batch.ends.frozen()


def restarted(world: World) -> None:
    """A checkpoint alone brings everything back."""
    world.finish_checkpoint(truncate=True)
    before = world.image
    world.crash(ops_kept=0)
    image = image_of(world.shard)
    for kind in ("batches", "members", "unsent"):
        assert image[kind] == before[kind]


def test_batch_is_written_again_when_it_changes_and_deleted_when_it_is_forgotten() -> None:
    world = World()
    batch = decide_create_batch(world.shard, world.now, BatchSpec(request_id="r"))
    options = replace(DEFAULT_OPTIONS, rules=replace(NO_RULES, batch_id=batch.id))
    decide_push(world.shard, world.now, Push("q", options, payloads=Payloads.of([b"x"])))
    restarted(world)
    assert world.shard.batches.by_request == {"r": batch.id}
    empty = decide_create_batch(world.shard, world.now, BatchSpec())
    restarted(world)
    decide_close_batch(world.shard, world.now, empty.id)
    restarted(world)
    assert list(world.shard.batches.due) == list(world.shard.batches.completed) == [empty.id]
    tick(world.shard, world.now)
    restarted(world)
    assert not world.shard.batches.due
    world.time_passes(world.shard.load.batch_kept_ms)
    restarted(world)
    assert list(world.shard.batches.records) == [batch.id]


def test_what_is_unsent_is_written_until_it_is_sent() -> None:
    """Or it would be sent twice."""
    world = World()
    for _ in range(2):
        world.shard.batches.note_unsent(ELSEWHERE, MemberEnd.DEAD, 1)
        restarted(world)
        settle_batches(world.shard, world.now, 1)
        if world.shard.batches.unsent:
            # As if the message before was acknowledged.
            world.shard.emit(BatchCountsSent(world.now.wall_ms, [ELSEWHERE]))
        restarted(world)
        assert not world.shard.batches.unsent


def test_a_damaged_batch_is_set_apart() -> None:
    world = World()
    batch = decide_create_batch(world.shard, world.now, BatchSpec())
    world.finish_checkpoint(truncate=True)
    world.store.rotten.add((ItemKind.BATCH, batch.id))
    world.crash(ops_kept=0)
    assert not world.shard.batches.records
    assert [found.what for found in world.reports] == [f"batch item {batch.id}"]
