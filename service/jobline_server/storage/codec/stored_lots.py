"""Lots ↔ the blobs of a checkpoint.

What a lot no longer needs, payloads before its first living job, is not written, and not there
when it is read back; indexes stay what they were.
"""

from __future__ import annotations

from jobline.v1 import store_pb2
from jobline_server.engine.apply.bookkeeping import run_key
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.storage.codec.shared import interned_options, payloads_of
from jobline_server.storage.codec.stored_jobs import HolderOf, QueueOf
from jobline_server.wire.options import serialized_options


def first_index_needed(lot: Lot) -> int:
    """The first index whose payload somebody may still ask for."""
    if not lot.leases:
        return lot.cursor
    lease = lot.leases[0]
    return lease.start + (lease.settled.find(0) if lease.settled is not None else 0)


def encode_lot(lot: Lot) -> bytes:
    """A lot that still has living jobs."""
    message = store_pb2.StoredLot()
    message.queue = lot.queue.name
    message.first_id = lot.first_id
    message.options = serialized_options(lot.options)
    kept = lot.payloads.rest(first_index_needed(lot))
    message.payload_block = kept.block
    message.first_index = kept.skipped
    message.count = len(kept)
    message.cursor = lot.cursor
    message.pushed_ms = lot.pushed_ms
    message.run_at_ms = lot.run_at_ms
    message.order = lot.order
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
    """The lot in a blob, with its leases in the hands of their holders."""
    message = store_pb2.StoredLot.FromString(blob)
    skipped = message.first_index
    payloads = payloads_of(message.payload_block, message.count - skipped, skipped=skipped)
    lot = Lot(
        message.first_id,
        queue_of(message.queue),
        interned_options(message.options),
        payloads,
        pushed_ms=message.pushed_ms,
        run_at_ms=message.run_at_ms,
    )
    lot.order = message.order
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
    holder.add(lease, run_key(lease), *lease.unfinished())
    return lease
