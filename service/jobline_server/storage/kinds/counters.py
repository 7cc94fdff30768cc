"""A shard's counters ↔ its one item of a checkpoint, which each checkpoint writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from jobline.v1 import store_pb2
from jobline_server.engine.shard import Shard
from jobline_server.storage.kinds.loading import Loading
from jobline_server.storage.kinds.table import DurableKind, KindSlices, Slice
from jobline_server.storage.segments import KeySegments
from jobline_server.storage.store import ItemKind, ItemRow


class Counters(NamedTuple):
    """What a shard counts."""

    next_sequence: int
    next_order: int
    front_order: int
    aged_ms: int
    aged_behind_ms: int
    told_offset: int


def encode_counters(shard: Shard) -> bytes:
    """Returns the blob of a shard's counters."""
    message = store_pb2.StoredShard()
    message.next_sequence = shard.next_sequence
    message.next_order = shard.next_order
    message.front_order = shard.front_order
    message.aged_ms = shard.age.last_ms
    message.aged_behind_ms = shard.age.behind_ms
    message.told_offset = shard.told_offset
    return message.SerializeToString()


def decode_counters(blob: bytes) -> Counters:
    """Returns the counters in a blob."""
    message = store_pb2.StoredShard.FromString(blob)
    return Counters(
        message.next_sequence,
        message.next_order,
        message.front_order,
        message.aged_ms,
        message.aged_behind_ms,
        message.told_offset,
    )


def load_counters(loading: Loading, rows: Iterator[ItemRow]) -> None:
    """Loads the counters, if they are there."""
    shard = loading.shard
    for row in rows:
        counters = decode_counters(row.blob)
        shard.next_sequence = counters.next_sequence
        shard.next_order = counters.next_order
        shard.front_order = counters.front_order
        shard.age.last_ms = counters.aged_ms
        shard.age.behind_ms = counters.aged_behind_ms
        shard.told_offset = counters.told_offset


class _CounterSlices(KindSlices):
    __slots__ = ("_shard",)

    def __init__(self, shard: Shard, _segments: KeySegments) -> None:
        self._shard = shard

    def finish(self, last: Slice) -> None:
        number = self._shard.number
        last.rows.append(ItemRow(number, ItemKind.SHARD, number, encode_counters(self._shard)))


COUNTERS = DurableKind(ItemKind.SHARD, load=load_counters, slices=_CounterSlices)
