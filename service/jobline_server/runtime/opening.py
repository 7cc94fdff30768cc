"""Opening: from files to a runtime, each shard as it was at its last commit.

1. the store is opened, each shard taken under a new epoch, its items and journal read
2. what the journal told of ended jobs goes to the finished file again
3. the finished file's counts complete the shards, and every lease gets its full time
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jobline_server.engine import limits
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState, Now
from jobline_server.runtime.clock import Clock
from jobline_server.runtime.runtime import Runtime, RuntimeSettings
from jobline_server.runtime.slots import JournalPosition, ShardSlot, ShardSlots
from jobline_server.runtime.watch.kept_batches import ReplayedBatches
from jobline_server.storage.ended_buffer import EndedBuffer
from jobline_server.storage.ended_store import EndedOp
from jobline_server.storage.recovery import Recovery, Report, recover_shard
from jobline_server.storage.store import DiskFull, ShardImage, ShardRow
from jobline_server.storage.stores import Stores


async def open_runtime(
    stores: Stores,
    *,
    shards: int,
    clock: Clock,
    settings: RuntimeSettings,
    new_name: Callable[[], str],
    report: Report,
) -> Runtime:
    """Recovers all shards and puts the runtime together; call `start` next. `shards` 0 takes what
    the store has; `report` is told of what was damaged and set apart. Raises `StoreRefused` or
    `DataLoss`.
    """
    store = stores.store
    number = await store.open(shards)
    await stores.ended_store.open()
    load = settings.load()
    epoch = first_epoch(clock.now())
    replayed = ReplayedBatches(number)
    images: list[ShardImage] = []
    recoveries: list[Recovery] = []
    for shard in range(number):
        image = await store.open_shard(shard, epoch, limits.ID_BLOCK)
        images.append(image)
        witness = replayed.of_shard(shard)
        recovery = await recover_shard(store, image, load=load, report=report, witness=witness)
        recoveries.append(recovery)
    opened = await _finish(recoveries, stores, clock.now())
    now_ms = clock.now().wall_ms
    slots = [
        ShardSlot(shard, _position(image.row, recovery, now_ms))
        for shard, image, recovery in zip(opened, images, recoveries, strict=True)
    ]
    return Runtime(
        stores,
        ShardSlots(slots, number),
        clock=clock,
        load=load,
        settings=settings,
        new_name=new_name,
        kept=replayed.in_order(),
    )


def _position(row: ShardRow, recovery: Recovery, now_ms: int) -> JournalPosition:
    return JournalPosition(
        chain=row.chain,
        id_ceiling=row.id_ceiling,
        generation=row.generation,
        checkpoint_offset=row.checkpoint_offset,
        checkpoint_ms=now_ms,
        segments=recovery.segments,
        journal_rows=row.offset - row.checkpoint_offset,
        journal_bytes=recovery.journal_bytes,
    )


async def _finish(recoveries: Sequence[Recovery], stores: Stores, now: Now) -> list[Shard]:
    buffer = EndedBuffer()
    for recovery in recoveries:
        buffer.add(recovery.take_endings())
    # What is trimmed here was never written, so the counts below do not have it either.
    ops, _trimmed = buffer.take()
    await _write(stores, ops)
    counts = _by_queue(await stores.ended_store.counts())
    return [recovery.finish(counts, now) for recovery in recoveries]


async def _write(stores: Stores, ops: Sequence[EndedOp]) -> None:
    """A start may have all of the reserve: without it there is nobody who could make room."""
    while True:
        try:
            await stores.ended_store.write(ops)
        except DiskFull:
            if not await stores.space.give_up_ballast(last=True):
                raise
        else:
            return


def _by_queue(
    counts: Mapping[tuple[str, int], int],
) -> dict[str, dict[JobState, int]]:
    by_queue: dict[str, dict[JobState, int]] = {}
    for (queue, state), count in counts.items():
        by_queue.setdefault(queue, {})[JobState(state)] = count
    return by_queue


def first_epoch(now: Now) -> int:
    """An epoch that no earlier life of any copy of the store can have had: seconds since 2025."""
    return max((now.wall_ms - limits.EPOCH_ZERO_MS) // limits.SECOND_MS, 1)
