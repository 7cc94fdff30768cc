"""Opening: makes a runtime from stores, with each shard as it was at its last commit.

1. the stores are opened, each shard is taken under a new epoch, its items and journal are read
2. the endings of the journal are written to the ended store again, as far as there is room
3. the counts of the ended store complete the shards, and every lease gets its full time
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from jobline_server.engine import limits
from jobline_server.engine.effects import Applied
from jobline_server.engine.values import JobState, Now
from jobline_server.engine.wanted import Wanted
from jobline_server.runtime.clock import Clock
from jobline_server.runtime.ended.reserve import change
from jobline_server.runtime.ended.waiting_ops import cleared, counts_after, first_write, settled
from jobline_server.runtime.runtime import Runtime, RuntimeSettings
from jobline_server.runtime.slots import JournalPosition, ShardSlot, ShardSlots
from jobline_server.runtime.watch.kept_batches import ReplayedBatches
from jobline_server.storage.ended_buffer import EndedBuffer
from jobline_server.storage.ended_store import EndedOp
from jobline_server.storage.recovery import Recovery, Report, Witness, recover_shard
from jobline_server.storage.store import DiskFull, ShardImage, ShardRow
from jobline_server.storage.stores import Stores

if TYPE_CHECKING:
    from jobline_server.runtime.exporter import Exporter  # only where a history is kept


async def open_runtime(
    stores: Stores,
    *,
    shards: int,
    clock: Clock,
    settings: RuntimeSettings,
    new_name: Callable[[], str],
    report: Report,
    exporter: Exporter | None = None,
) -> Runtime:
    """Recovers all shards and returns the runtime; call `start` next. `shards` 0 takes the number
    that the store has; `report` is called with each item that was damaged and set apart. Raises
    `StoreRefused` or `DataLoss`.
    """
    store = stores.store
    number = await store.open(shards)
    await stores.ended_store.open()
    load = settings.load()
    load.keeps_history = exporter is not None
    epoch = first_epoch(clock.now())
    replayed = ReplayedBatches(number)
    images: list[ShardImage] = []
    recoveries: list[Recovery] = []
    for shard in range(number):
        image = await store.open_shard(shard, epoch, limits.ID_BLOCK)
        images.append(image)
        witness = replayed.of_shard(shard)
        if exporter is not None:
            witness = _both(witness, exporter.witness(shard, image.row.offset))
        recovery = await recover_shard(store, image, load=load, report=report, witness=witness)
        recoveries.append(recovery)
    waiting = await _write_endings(recoveries, stores, load.wanted)
    counts, now = _by_queue(await counts_after(stores.ended_store, waiting)), clock.now()
    slots = [
        ShardSlot(recovery.finish(counts, now), _position(image.row, recovery, now.wall_ms))
        for image, recovery in zip(images, recoveries, strict=True)
    ]
    runtime = Runtime(
        stores,
        ShardSlots(slots, number),
        clock=clock,
        load=load,
        settings=settings,
        new_name=new_name,
        kept=replayed.in_order(),
    )
    _go_on(runtime, waiting, exporter)
    return runtime


def _go_on(runtime: Runtime, waiting: Sequence[EndedOp], exporter: Exporter | None) -> None:
    """Hands on what found no room, and has all that is committed from now on exported."""
    if waiting:
        runtime.core.commits.disk_full = True
        runtime.ended.writer.take_over(waiting)
    if exporter is None:
        return
    runtime.core.listen("commit_history", exporter.on_committed, is_vital=False)
    runtime.checkpoints.history = exporter
    exporter.start(runtime.core.commits.exclusive)


def _both(one: Witness, other: Witness) -> Witness:
    def take(offset: int, applied: Sequence[Applied], blob_bytes: int) -> None:
        one(offset, applied, blob_bytes)
        other(offset, applied, blob_bytes)

    return take


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


async def _write_endings(
    recoveries: Sequence[Recovery], stores: Stores, wanted: Wanted
) -> Sequence[EndedOp]:
    """Writes what has ended since the checkpoints. Returns what found no room beside the reserve;
    its changes were written, with all of the reserve if needed: they make room.
    """
    buffer = EndedBuffer(wanted=wanted)
    for recovery in recoveries:
        buffer.add(recovery.take_endings())
    # Jobs that are trimmed here were never written, so the counts do not have them.
    ops, _trimmed = buffer.take()
    try:
        while ops:
            first = first_write(ops)
            await stores.ended_store.write(first)
            del ops[: len(first)]
    except DiskFull:
        await change(stores.ended_store, stores.space, cleared(ops))
    return await settled(ops)


def _by_queue(
    counts: Mapping[tuple[str, int], int],
) -> dict[str, dict[JobState, int]]:
    by_queue: dict[str, dict[JobState, int]] = {}
    for (queue, state), count in counts.items():
        by_queue.setdefault(queue, {})[JobState(state)] = count
    return by_queue


def first_epoch(now: Now) -> int:
    """Returns an epoch that no earlier run of any copy of the store has had: seconds since 2025."""
    return max((now.wall_ms - limits.EPOCH_ZERO_MS) // limits.SECOND_MS, 1)
