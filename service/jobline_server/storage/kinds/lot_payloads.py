"""Payloads of large lots ↔ items of a checkpoint, beside those of their lots.

An item of payloads is written when its lot is first written, and again when more than half of it is
not needed any more; meanwhile only the lot's own small item follows what happens. A lot says that
its payloads are apart, so one whose payloads are not there is known to be damaged, whenever it is
loaded. Payloads without their lot are nobody's.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobline.v1 import store_pb2
from jobline_server.engine.lot import Lot
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.shard import Shard
from jobline_server.storage.codec.shared import fill_payloads, payloads_of
from jobline_server.storage.kinds.by_id import SlicesById
from jobline_server.storage.kinds.loading import Loading, SetApart
from jobline_server.storage.kinds.lots import enter_lot, lot_of, weigh_payloads
from jobline_server.storage.kinds.table import DurableKind
from jobline_server.storage.segments import KeySegments
from jobline_server.storage.store import ItemKind, ItemRow


def encode_payloads(lot: Lot) -> bytes:
    """Returns the blob of a lot's payloads."""
    message = store_pb2.StoredLotPayloads()
    kept = lot.payloads.rest(lot.apart or 0)
    fill_payloads(message, kept)
    message.first_index = kept.skipped
    message.count = len(kept)
    return message.SerializeToString()


def decode_payloads(blob: bytes) -> Payloads:
    """Returns the payloads in a blob."""
    message = store_pb2.StoredLotPayloads.FromString(blob)
    skipped = message.first_index
    return payloads_of(message, message.count - skipped, skipped=skipped)


def load_payloads(loading: Loading, rows: Iterator[ItemRow]) -> None:
    """Loads a page of payloads, with the lots that wait for them."""
    for row in rows:
        message = loading.without_payloads.pop(row.key, None)
        if message is None:
            loading.shard.changes.lot_payloads.to_delete.append(row.key)
            continue
        payloads = decode_payloads(row.blob)
        lot = lot_of(message, payloads, loading.queue_of, loading.holder_of)
        lot.apart = payloads.skipped
        enter_lot(loading, lot)


def _set_apart_without_payloads(loading: Loading) -> bool:
    """Sets the lots apart whose payloads did not come; returns whether there were any."""
    lots = list(loading.without_payloads)
    for first_id in lots:
        loading.shard.changes.lots.to_delete.append(first_id)
        what = f"lot item {first_id}"
        loading.report(SetApart(loading.shard.number, what, "its payloads are not there"))
    loading.without_payloads.clear()
    return bool(lots)


def _save(_shard: Shard, first_id: int, lot: Lot) -> tuple[int, bytes]:
    return first_id, encode_payloads(lot)


class _PayloadSlices(SlicesById):
    __slots__ = ()

    def __init__(self, shard: Shard, _segments: KeySegments) -> None:
        lots, changes = shard.lots.lots, shard.changes.lot_payloads
        super().__init__(ItemKind.LOT_PAYLOADS, shard, lots, changes, _save, weigh_payloads)

    def give_back(self) -> None:
        """See `KindSlices`. A lot may have become too small for this meanwhile."""
        lots = self._shard.lots.lots
        found = ((first_id, lots.find(first_id)) for first_id in self._written)
        self._written = [one for one, lot in found if lot is not None and lot.apart is not None]
        super().give_back()


LOT_PAYLOADS = DurableKind(
    ItemKind.LOT_PAYLOADS,
    load=load_payloads,
    slices=_PayloadSlices,
    end_loading=_set_apart_without_payloads,
)
