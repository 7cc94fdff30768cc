"""The fact of a job that an operator changed, between value and message."""

from __future__ import annotations

from jobline.v1 import entry_pb2
from jobline_server.engine.update_entries import JobUpdated, KeyForgotten
from jobline_server.storage.codec.table import FactRow, FactTable, whole


def fill_job_updated(entry: entry_pb2.Entry, fact: JobUpdated) -> None:
    """Writes it into an entry."""
    message = entry.job_updated
    message.queue = fact.queue
    message.id = fact.id
    if fact.payload is not None:
        message.payload = fact.payload
    if fact.priority is not None:
        message.priority = fact.priority
    if fact.run_at_ms is not None:
        message.run_at_ms = fact.run_at_ms


def job_updated(at_ms: int, message: entry_pb2.JobUpdated) -> JobUpdated:
    """Reads it."""
    has = message.HasField
    return JobUpdated(
        at_ms=at_ms,
        queue=message.queue,
        id=message.id,
        payload=message.payload if has("payload") else None,
        priority=message.priority if has("priority") else None,
        run_at_ms=message.run_at_ms if has("run_at_ms") else None,
    )


def fill_key_forgotten(entry: entry_pb2.Entry, fact: KeyForgotten) -> None:
    """Writes it into an entry."""
    entry.key_forgotten.queue = fact.queue
    entry.key_forgotten.key_hash = fact.key_hash


def key_forgotten(at_ms: int, message: entry_pb2.KeyForgotten) -> KeyForgotten:
    """Reads it."""
    return KeyForgotten(at_ms, message.queue, message.key_hash)


FACTS: FactTable = {
    KeyForgotten: FactRow("key_forgotten", fill_key_forgotten, key_forgotten, whole),
    JobUpdated: FactRow("job_updated", fill_job_updated, job_updated, whole),
}
