"""Lots ↔ the items of a checkpoint.

What a lot no longer needs, payloads before its first live job, is not written, and not there
when it is read back; indexes stay what they were. The payloads of a large lot are an item apart
(`lot_payloads`): what changes with each hand-out is small.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobline.v1 import store_pb2
from jobline_server.engine.apply.bookkeeping import (
    add_lot,
    count_active,
    forget_payloads,
    run_key,
)
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState
from jobline_server.storage.codec.shared import fill_payloads, interned_options, payloads_of
from jobline_server.storage.kinds.by_id import by_id
from jobline_server.storage.kinds.loading import HolderOf, Loading, QueueOf
from jobline_server.storage.kinds.table import DurableKind
from jobline_server.storage.store import ItemKind, ItemRow
from jobline_server.wire.options import serialized_options

# Lots with so many bytes of payloads have those in an item of their own.
APART_BYTES_MIN = 32 << 10

# Enum attribute access is slow before Python 3.12.
_SCHEDULED = JobState.SCHEDULED


def first_index_needed(lot: Lot) -> int:
    """Returns the first index whose payload may still be asked for."""
    if not lot.leases:
        return lot.cursor
    lease = lot.leases[0]
    return lease.start + (lease.settled.find(0) if lease.settled is not None else 0)


def encode_lot(lot: Lot, *, apart: bool = False) -> bytes:
    """Returns the blob of a lot that still has live jobs, with or without its payloads."""
    message = store_pb2.StoredLot()
    message.queue = lot.queue.name
    message.first_id = lot.first_id
    message.options = serialized_options(lot.options)
    if apart:
        message.payloads_apart = True
    else:
        kept = lot.payloads.rest(first_index_needed(lot))
        fill_payloads(message, kept)
        message.first_index = kept.skipped
    message.count = len(lot.payloads)
    message.cursor = lot.cursor
    message.pushed_ms = lot.pushed_ms
    message.run_at_ms = lot.run_at_ms
    message.order = lot.order
    message.waits_from_ms = lot.ready_ms
    if lot.holes:
        message.gone.extend(sorted(lot.holes))
    for lease in lot.leases:
        _fill_run_lease(message.leases.add(), lease)
    return message.SerializeToString()


def _fill_run_lease(message: store_pb2.StoredRunLease, lease: RunLease) -> None:
    message.start = lease.start
    message.count = lease.count
    message.delivery = lease.delivery
    message.worker = lease.holder.worker
    message.worker_version = lease.holder.version
    message.session = lease.holder.session_id
    message.lease_ms = lease.lease_ms
    message.leased_ms = lease.leased_ms
    if lease.settled is not None:
        message.settled = bytes(lease.settled)


def decode_lot(blob: bytes, queue_of: QueueOf, holder_of: HolderOf) -> Lot:
    """Returns the lot in a blob with its payloads, its leases given to their holders."""
    message = store_pb2.StoredLot.FromString(blob)
    skipped = message.first_index
    payloads = payloads_of(message, message.count - skipped, skipped=skipped)
    return lot_of(message, payloads, queue_of, holder_of)


def lot_of(
    message: store_pb2.StoredLot, payloads: Payloads, queue_of: QueueOf, holder_of: HolderOf
) -> Lot:
    """Returns a stored lot with these payloads, its leases given to their holders."""
    lot = Lot(
        message.first_id,
        queue_of(message.queue),
        interned_options(message.options),
        payloads,
        pushed_ms=message.pushed_ms,
        run_at_ms=message.run_at_ms,
    )
    lot.order = message.order
    lot.ready_ms = message.waits_from_ms
    lot.cursor = message.cursor
    for index in message.gone:
        lot.remove(index)
    lot.stored = True
    for stored in message.leases:
        lot.leases.append(_run_lease(lot, stored, holder_of))
    lot.remaining = lot.waiting() + sum(lease.remaining for lease in lot.leases)
    return lot


def _run_lease(lot: Lot, message: store_pb2.StoredRunLease, holder_of: HolderOf) -> RunLease:
    holder = holder_of(message.worker, message.session, message.worker_version)
    lease = RunLease(
        lot,
        message.start,
        message.count,
        delivery=message.delivery,
        holder=holder,
        lease_ms=message.lease_ms,
    )
    lease.leased_ms = message.leased_ms
    if message.settled:
        lease.settled = bytearray(message.settled)
        lease.remaining = lease.settled.count(0)
    holder.add(lease, run_key(lease), *lease.open_totals())
    return lease


def load_lots(loading: Loading, rows: Iterator[ItemRow]) -> None:
    """Loads a page of lots; those whose payloads are apart wait for them."""
    for row in rows:
        message = store_pb2.StoredLot.FromString(row.blob)
        if message.payloads_apart:
            loading.without_payloads[row.key] = message
            continue
        skipped = message.first_index
        payloads = payloads_of(message, message.count - skipped, skipped=skipped)
        enter_lot(loading, lot_of(message, payloads, loading.queue_of, loading.holder_of))


def enter_lot(loading: Loading, lot: Lot) -> None:
    """A loaded lot is live from now on."""
    shard = loading.shard
    add_lot(shard, lot)
    shard.use_ids(lot.first_id, len(lot.payloads))
    queue, waiting, payload_bytes = lot.queue, lot.waiting(), lot.bytes_left()
    shard.load.live_jobs += lot.remaining
    shard.load.payload_bytes += payload_bytes
    queue.payload_bytes += payload_bytes
    count_active(shard, queue, lot.remaining - waiting)
    if queue.fair is not None and lot.remaining > waiting:
        queue.fair.hand_out("", (), members=lot.remaining - waiting)
    if lot.run_at_ms:
        queue.counts[_SCHEDULED] += waiting
        shard.schedule(lot.run_at_ms, lot.first_id)
    elif waiting:
        loading.ready[queue].append(lot)


def _bytes_from(lot: Lot, index: int) -> int:
    return lot.payloads.bytes_of(index, len(lot.payloads) - index)


def _is_payload_item_good(lot: Lot) -> bool:
    """Whether a lot has an item of payloads, half of which at least are needed."""
    if lot.apart is None:
        return False
    return 2 * _bytes_from(lot, first_index_needed(lot)) >= _bytes_from(lot, lot.apart)


def _are_apart(shard: Shard, lot: Lot) -> bool:
    """Returns whether a lot's payloads have an item of their own, and notes that item where it is
    to be written: as it halves each time, each payload is written twice at most.
    """
    needed = first_index_needed(lot)
    if _bytes_from(lot, needed) < APART_BYTES_MIN:
        if lot.apart is not None:
            forget_payloads(shard, lot)
        return False
    if not _is_payload_item_good(lot):
        lot.apart = needed
        shard.changes.lot_payloads.to_write.add(lot.first_id)
    return True


def _save(shard: Shard, first_id: int, lot: Lot) -> tuple[int, bytes]:
    lot.stored = True
    return first_id, encode_lot(lot, apart=_are_apart(shard, lot))


def _weigh(lot: Lot) -> tuple[int, int]:
    return (0, 0) if _is_payload_item_good(lot) else weigh_payloads(lot)


def weigh_payloads(lot: Lot) -> tuple[int, int]:
    """What a slice pays for the payloads of a lot."""
    return len(lot.payloads), len(lot.payloads) * lot.payloads.job_bytes_max


LOTS = DurableKind(
    ItemKind.LOT,
    load=load_lots,
    slices=by_id(
        ItemKind.LOT,
        owner=lambda shard: shard.lots.lots,
        changes=lambda shard: shard.changes.lots,
        save=_save,
        weigh=_weigh,
    ),
)
