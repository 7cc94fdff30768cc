"""Opening: makes a runtime from stores, with each shard as it was at its last commit.

1. the stores are opened, each shard is taken under a new epoch, its items and journal are read
2. the endings of the journal are written to the ended store again
3. the counts of the ended store complete the shards, and every lease gets its full time
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from jobline_server.engine import limits
from jobline_server.engine.effects import Applied
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState, Now
from jobline_server.engine.wanted import Wanted
from jobline_server.runtime.clock import Clock
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
    opened = await _finish(recoveries, stores, clock.now(), load.wanted)
    now_ms = clock.now().wall_ms
    slots = [
        ShardSlot(shard, _position(image.row, recovery, now_ms))
        for shard, image, recovery in zip(opened, images, recoveries, strict=True)
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
    if exporter is not None:
        _export(runtime, exporter)
    return runtime


def _export(runtime: Runtime, exporter: Exporter) -> None:
    """Has all that is committed from now on exported."""
    runtime.core.listen("commit_history", exporter.on_committed)
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


async def _finish(
    recoveries: Sequence[Recovery], stores: Stores, now: Now, wanted: Wanted
) -> list[Shard]:
    buffer = EndedBuffer(wanted=wanted)
    for recovery in recoveries:
        buffer.add(recovery.take_endings())
    # Jobs that are trimmed here were never written, so the counts below do not have them.
    ops, _trimmed = buffer.take()
    await _write(stores, ops)
    counts = _by_queue(await stores.ended_store.counts())
    return [recovery.finish(counts, now) for recovery in recoveries]


async def _write(stores: Stores, ops: Sequence[EndedOp]) -> None:
    """Writes, with all of the reserve if needed: only a server that has started can make room."""
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
    """Returns an epoch that no earlier run of any copy of the store has had: seconds since 2025."""
    return max((now.wall_ms - limits.EPOCH_ZERO_MS) // limits.SECOND_MS, 1)
