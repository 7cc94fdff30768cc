"""Facts of queues that come, change and go, between value and message."""

from __future__ import annotations

from jobline.v1 import entry_pb2
from jobline_server.engine.queue_entries import (
    QueueChanged,
    QueueDeleted,
    QueueLimited,
    QueuePaused,
    QueueResumed,
)
from jobline_server.storage.codec.table import FactRow, FactTable, whole
from jobline_server.wire.settings import fill_settings, settings_from_message


def fill_queue_changed(entry: entry_pb2.Entry, fact: QueueChanged) -> None:
    """Writes it into an entry."""
    message = entry.queue_changed
    message.queue = fact.queue
    fill_settings(message.settings, fact.settings)
    message.created_number = fact.created_number


def queue_changed(at_ms: int, message: entry_pb2.QueueChanged) -> QueueChanged:
    """Reads it."""
    return QueueChanged(
        at_ms=at_ms,
        queue=message.queue,
        settings=settings_from_message(message.settings),
        created_number=message.created_number,
    )


def fill_queue_paused(entry: entry_pb2.Entry, fact: QueuePaused) -> None:
    """Writes it into an entry."""
    message = entry.queue_paused
    message.queue = fact.queue
    message.principal = fact.principal
    message.reason = fact.reason


def queue_paused(at_ms: int, message: entry_pb2.QueuePaused) -> QueuePaused:
    """Reads it."""
    return QueuePaused(
        at_ms=at_ms, queue=message.queue, principal=message.principal, reason=message.reason
    )


def fill_queue_resumed(entry: entry_pb2.Entry, fact: QueueResumed) -> None:
    """Writes it into an entry."""
    entry.queue_resumed.SetInParent()
    entry.queue_resumed.queue = fact.queue


def queue_resumed(at_ms: int, message: entry_pb2.QueueResumed) -> QueueResumed:
    """Reads it."""
    return QueueResumed(at_ms=at_ms, queue=message.queue)


def fill_queue_limited(entry: entry_pb2.Entry, fact: QueueLimited) -> None:
    """Writes it into an entry."""
    message = entry.queue_limited
    message.queue = fact.queue
    message.until_ms = fact.until_ms
    message.principal = fact.principal
    message.reason = fact.reason


def queue_limited(at_ms: int, message: entry_pb2.QueueLimited) -> QueueLimited:
    """Reads it."""
    return QueueLimited(at_ms, message.queue, message.until_ms, message.principal, message.reason)


def fill_queue_deleted(entry: entry_pb2.Entry, fact: QueueDeleted) -> None:
    """Writes it into an entry."""
    entry.queue_deleted.SetInParent()
    entry.queue_deleted.queue = fact.queue


def queue_deleted(at_ms: int, message: entry_pb2.QueueDeleted) -> QueueDeleted:
    """Reads it."""
    return QueueDeleted(at_ms=at_ms, queue=message.queue)


FACTS: FactTable = {
    QueueChanged: FactRow("queue_changed", fill_queue_changed, queue_changed, whole),
    QueuePaused: FactRow("queue_paused", fill_queue_paused, queue_paused, whole),
    QueueResumed: FactRow("queue_resumed", fill_queue_resumed, queue_resumed, whole),
    QueueLimited: FactRow("queue_limited", fill_queue_limited, queue_limited, whole),
    QueueDeleted: FactRow("queue_deleted", fill_queue_deleted, queue_deleted, whole),
}
