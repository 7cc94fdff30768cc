"""Queues ↔ the items of a checkpoint, without their jobs."""

from __future__ import annotations

from collections.abc import Iterator

from jobline.v1 import store_pb2
from jobline_server.engine.allowance import TimeLimit, allowance_of
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Shard
from jobline_server.storage.kinds.by_id import by_id
from jobline_server.storage.kinds.loading import Loading
from jobline_server.storage.kinds.table import DurableKind
from jobline_server.storage.store import ItemKind, ItemRow
from jobline_server.wire.settings import fill_settings, settings_from_message


def encode_queue(queue: Queue) -> bytes:
    """Returns the blob of a queue, without its jobs."""
    message = store_pb2.StoredQueue()
    message.name = queue.name
    message.number = queue.number
    fill_settings(message.settings, queue.settings)
    message.paused = queue.paused
    message.paused_by = queue.paused_by
    message.pause_reason = queue.pause_reason
    message.created_ms = queue.created_ms
    if queue.limited is not None:
        message.limited_until_ms = queue.limited.until_ms
        message.limited_by = queue.limited.by
        message.limited_reason = queue.limited.reason
    return message.SerializeToString()


def decode_queue(blob: bytes) -> Queue:
    """Returns the queue in a blob, empty."""
    message = store_pb2.StoredQueue.FromString(blob)
    queue = Queue(message.name, message.number, message.created_ms)
    queue.settings = settings_from_message(message.settings)
    queue.paused = message.paused
    queue.paused_by = message.paused_by
    queue.pause_reason = message.pause_reason
    if message.limited_until_ms:
        queue.limited = TimeLimit(
            message.limited_until_ms, message.limited_by, message.limited_reason
        )
    queue.allowance = allowance_of(None, queue.settings, queue.limited, mono_ms=0)
    queue.stored = True
    return queue


def load_queues(loading: Loading, rows: Iterator[ItemRow]) -> None:
    """Loads a page of queues."""
    for row in rows:
        queue = decode_queue(row.blob)
        if queue.settings.fair:
            queue.be_fair(loading.shard.clocks, loading.shard.resting)
        loading.shard.queues[queue.name] = queue
        loading.shard.use_ids(queue.number, 1)


def _save(_shard: Shard, _name: str, queue: Queue) -> tuple[int, bytes]:
    queue.stored = True
    return queue.number, encode_queue(queue)


QUEUES = DurableKind(
    ItemKind.QUEUE,
    load=load_queues,
    slices=by_id(
        ItemKind.QUEUE,
        owner=lambda shard: shard.queues,
        changes=lambda shard: shard.changes.queues,
        save=_save,
    ),
)
