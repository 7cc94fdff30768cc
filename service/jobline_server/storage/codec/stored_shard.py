"""Queues, keys and a shard's counters ↔ the blobs of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from jobline.v1 import store_pb2
from jobline_server.engine.keys import KeyRecord
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Shard
from jobline_server.wire.settings import fill_settings, settings_from_message

KEY_HASH_BYTES = 16


class Counters(NamedTuple):
    """What a shard counts."""

    next_sequence: int
    next_order: int
    aged_ms: int
    aged_behind_ms: int


def encode_queue(queue: Queue) -> bytes:
    """A queue, without its jobs."""
    message = store_pb2.StoredQueue()
    message.name = queue.name
    message.number = queue.number
    fill_settings(message.settings, queue.settings)
    message.paused = queue.paused
    message.paused_by = queue.paused_by
    message.pause_reason = queue.pause_reason
    message.created_ms = queue.created_ms
    return message.SerializeToString()


def decode_queue(blob: bytes) -> Queue:
    """The queue in a blob, empty."""
    message = store_pb2.StoredQueue.FromString(blob)
    queue = Queue(message.name, message.number, message.created_ms)
    queue.settings = settings_from_message(message.settings)
    queue.paused = message.paused
    queue.paused_by = message.paused_by
    queue.pause_reason = message.pause_reason
    queue.stored = True
    return queue


def encode_keys(
    bucket: int, keys: Iterable[tuple[bytes, KeyRecord]], *, requests: bool = False
) -> bytes:
    """Keys of one bucket and kind, in columns."""
    message = store_pb2.StoredKeys()
    message.requests = requests
    message.bucket = bucket
    pairs = list(keys)
    message.hashes = b"".join([key_hash for key_hash, _ in pairs])
    message.first_ids.extend([record.first_id for _, record in pairs])
    message.counts.extend([record.count for _, record in pairs])
    message.digests.extend([record.digest for _, record in pairs])
    message.expires_ms.extend([record.expires_ms for _, record in pairs])
    return message.SerializeToString()


def decode_keys(blob: bytes) -> tuple[bool, Iterator[tuple[bytes, KeyRecord]]]:
    """Whether the keys in a blob are request ids, and they themselves."""
    message = store_pb2.StoredKeys.FromString(blob)
    return message.requests, _keys_of(message)


def _keys_of(message: store_pb2.StoredKeys) -> Iterator[tuple[bytes, KeyRecord]]:
    hashes = message.hashes
    starts = range(0, len(hashes), KEY_HASH_BYTES)
    columns = (message.first_ids, message.counts, message.digests, message.expires_ms)
    for start, *record in zip(starts, *columns, strict=True):
        yield hashes[start : start + KEY_HASH_BYTES], KeyRecord(*record)


def encode_counters(shard: Shard) -> bytes:
    """What a shard counts."""
    message = store_pb2.StoredShard()
    message.next_sequence = shard.next_sequence
    message.next_order = shard.next_order
    message.aged_ms = shard.age.last_ms
    message.aged_behind_ms = shard.age.behind_ms
    return message.SerializeToString()


def decode_counters(blob: bytes) -> Counters:
    """What a shard counted."""
    message = store_pb2.StoredShard.FromString(blob)
    return Counters(
        message.next_sequence,
        message.next_order,
        message.aged_ms,
        message.aged_behind_ms,
    )
