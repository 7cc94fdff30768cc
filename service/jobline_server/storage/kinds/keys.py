"""Keys ↔ the items of a checkpoint.

Keys are written once, a segment of those of one hour at a time, and removed with all segments of
their hour (`storage/segments.py`). Job keys and request ids are tables apart; a segment says whose
it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jobline.v1 import store_pb2
from jobline_server.engine.keys import KeyRecord, KeyTable
from jobline_server.engine.shard import Shard
from jobline_server.storage.kinds.loading import Loading
from jobline_server.storage.kinds.table import (
    BYTES_AN_ITEM,
    KEYS_AN_ITEM,
    DurableKind,
    KindSlices,
    Slice,
)
from jobline_server.storage.segments import KeySegments
from jobline_server.storage.store import ItemKind, ItemRow

KEY_HASH_BYTES = 16
SEGMENT_KEYS_MAX = 8_192


def encode_keys(
    bucket: int, keys: Iterable[tuple[bytes, KeyRecord]], *, requests: bool = False
) -> bytes:
    """Returns the blob of keys of one hour and table, in columns."""
    message = store_pb2.StoredKeys()
    message.requests = requests
    message.bucket = bucket
    pairs = list(keys)
    message.hashes = b"".join([key_hash for key_hash, _ in pairs])
    message.first_ids.extend([record.first_id for _, record in pairs])
    message.counts.extend([record.count for _, record in pairs])
    message.digests.extend([record.digest for _, record in pairs])
    message.expires_ms.extend([record.expires_ms for _, record in pairs])
    stored_rows = [record.stored_rows for _, record in pairs]
    if any(stored_rows):
        message.stored_rows.extend(stored_rows)
    return message.SerializeToString()


def decode_keys(blob: bytes) -> tuple[bool, Iterator[tuple[bytes, KeyRecord]]]:
    """Returns whether the keys in a blob are request ids, and the keys."""
    message = store_pb2.StoredKeys.FromString(blob)
    return message.requests, _keys_of(message)


def _keys_of(message: store_pb2.StoredKeys) -> Iterator[tuple[bytes, KeyRecord]]:
    hashes = message.hashes
    starts = range(0, len(hashes), KEY_HASH_BYTES)
    stored_rows = message.stored_rows or [b""] * len(starts)
    columns = (
        message.first_ids,
        message.counts,
        message.digests,
        message.expires_ms,
        stored_rows,
    )
    for start, *record in zip(starts, *columns, strict=True):
        yield hashes[start : start + KEY_HASH_BYTES], KeyRecord(*record)


def load_keys(loading: Loading, rows: Iterator[ItemRow]) -> None:
    """Loads a page of segments."""
    shard = loading.shard
    for row in rows:
        loading.segments.note(row.key)
        are_requests, keys = decode_keys(row.blob)
        table = shard.requests if are_requests else shard.keys
        added = 0
        for key_hash, record in keys:
            known = table.records.get(key_hash)
            # A key that was taken over after its window stands in two segments.
            if known is None or known.expires_ms < record.expires_ms:
                added += table.add(key_hash, record, saved=True)
        if are_requests:
            shard.load.requests += added
        else:
            shard.load.keys += added


def _note_damaged(loading: Loading, item_key: int) -> None:
    loading.segments.note(item_key)


class _KeySlices(KindSlices):
    __slots__ = ("_ended", "_hashes", "_new", "_segments", "_shard")

    def __init__(self, shard: Shard, segments: KeySegments) -> None:
        self._shard = shard
        self._segments = segments
        self._hashes: list[tuple[KeyTable, int, list[bytes]]] = []
        self._new: list[int] = []
        self._ended: list[int] = []

    def noted(self) -> int:
        tables = (self._shard.keys, self._shard.requests)
        return sum(len(hashes) for table in tables for hashes in table.unsaved.values())

    def take(self, piece: Slice) -> None:
        self._take(piece, self._shard.keys, requests=False)
        self._take(piece, self._shard.requests, requests=True)

    def finish(self, last: Slice) -> None:
        """Segments of hours that ended are removed."""
        shard = self._shard
        forgotten_ms = min(shard.keys.forgotten_ms, shard.requests.forgotten_ms)
        for hour, item_keys in self._segments.ended(forgotten_ms).items():
            last.removals += [(ItemKind.KEYS, key) for key in item_keys]
            self._ended += item_keys
            self._segments.forget(hour)

    def give_back(self) -> None:
        for table, hour, hashes in self._hashes:
            table.unsaved.setdefault(hour, []).extend(hashes)
        for item_key in self._new:
            self._segments.take_back(item_key)
        for item_key in self._ended:
            self._segments.note(item_key)
        self._hashes, self._new, self._ended = [], [], []

    def _take(self, piece: Slice, keys: KeyTable, *, requests: bool) -> None:
        while keys.unsaved and piece.budget > 0:
            hour = min(keys.unsaved)
            unsaved = keys.unsaved[hour]
            most = max(int(min(piece.budget * KEYS_AN_ITEM, SEGMENT_KEYS_MAX)), 1)
            hashes = unsaved[-most:]
            del unsaved[-most:]
            if not unsaved:
                del keys.unsaved[hour]
            self._hashes.append((keys, hour, hashes))
            current = keys.written(hour, hashes)
            if current:
                item_key = self._segments.add(hour)
                self._new.append(item_key)
                blob = encode_keys(hour, current, requests=requests)
                piece.rows.append(ItemRow(self._shard.number, ItemKind.KEYS, item_key, blob))
                piece.budget -= 1 + len(blob) // BYTES_AN_ITEM
            piece.budget -= len(hashes) / KEYS_AN_ITEM


KEYS = DurableKind(ItemKind.KEYS, load=load_keys, slices=_KeySlices, note_damaged=_note_damaged)
