"""Throttled unique keys ↔ the items of a checkpoint, each under the id of the job that was pushed
with its key.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobline.v1 import store_pb2
from jobline_server.engine.shard import Shard
from jobline_server.engine.unique import Throttle
from jobline_server.storage.kinds.bundles import NEIGHBOUR_BITS
from jobline_server.storage.kinds.by_id import SlicesById
from jobline_server.storage.kinds.loading import Loading
from jobline_server.storage.kinds.table import DurableKind, Slice
from jobline_server.storage.segments import KeySegments
from jobline_server.storage.store import ItemKind, ItemRow


def encode_throttle(key_hash: bytes, throttle: Throttle) -> bytes:
    """Returns the blob of a throttled key."""
    message = store_pb2.StoredThrottle()
    message.hash = key_hash
    message.id = throttle.job_id
    message.until_ms = throttle.expires_ms
    return message.SerializeToString()


def decode_throttle(blob: bytes) -> tuple[bytes, Throttle]:
    """Returns the hash and the throttle in a blob."""
    message = store_pb2.StoredThrottle.FromString(blob)
    throttle = Throttle(message.id, message.until_ms)
    throttle.stored = True
    return message.hash, throttle


def load_throttles(loading: Loading, rows: Iterator[ItemRow]) -> None:
    """Loads a page of throttled keys."""
    shard = loading.shard
    for row in rows:
        key_hash, throttle = decode_throttle(row.blob)
        shard.load.throttles += shard.unique.throttled.add(key_hash, throttle)


def _save(_shard: Shard, key_hash: bytes, throttle: Throttle) -> tuple[int, bytes]:
    throttle.stored = True
    return throttle.job_id, encode_throttle(key_hash, throttle)


class _ThrottleSlices(SlicesById):
    """Writes throttles in the order of their ids. In that of their hashes each would be in another
    page of SQLite's index: a million of them were gigabytes of writes.
    """

    __slots__ = ()

    def __init__(self, shard: Shard, _segments: KeySegments) -> None:
        records, changes = shard.unique.throttled.records, shard.changes.throttles
        super().__init__(ItemKind.THROTTLE, shard, records, changes, _save, None)

    def give_back(self) -> None:
        """See `KindSlices`."""
        written, self._written = self._written, []
        super().give_back()
        for job_id, key_hash in written:
            throttle = self._values.get(key_hash)
            if throttle is not None and throttle.job_id == job_id:
                self._changes.to_write[job_id] = key_hash

    def _take_changed(self, piece: Slice) -> None:
        shard, to_write, records = self._shard, self._changes.to_write, self._values
        while piece.budget > 0 and to_write:
            noted = to_write.pop_neighbours(NEIGHBOUR_BITS)
            self._written += noted
            for _, key_hash in noted:
                row = _save(shard, key_hash, records[key_hash])
                piece.rows.append(ItemRow(shard.number, self._kind, *row))
            piece.budget -= len(noted)


THROTTLES = DurableKind(ItemKind.THROTTLE, load=load_throttles, slices=_ThrottleSlices)
