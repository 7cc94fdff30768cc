"""Facts of limiters, between value and message."""

from __future__ import annotations

from jobline.v1 import entry_pb2
from jobline_server.engine.limiter_entries import LimiterChanged, LimiterDeleted
from jobline_server.storage.codec.table import FactRow, FactTable, whole
from jobline_server.wire.limiters import fill_limiter, limiter_from_message


def fill_limiter_changed(entry: entry_pb2.Entry, fact: LimiterChanged) -> None:
    """Writes it into an entry."""
    fill_limiter(entry.limiter_changed.limiter, fact.limiter)


def limiter_changed(at_ms: int, message: entry_pb2.LimiterChanged) -> LimiterChanged:
    """Reads it."""
    return LimiterChanged(at_ms, limiter_from_message(message.limiter))


def fill_limiter_deleted(entry: entry_pb2.Entry, fact: LimiterDeleted) -> None:
    """Writes it into an entry."""
    entry.limiter_deleted.name = fact.name


def limiter_deleted(at_ms: int, message: entry_pb2.LimiterDeleted) -> LimiterDeleted:
    """Reads it."""
    return LimiterDeleted(at_ms, message.name)


FACTS: FactTable = {
    LimiterChanged: FactRow("limiter_changed", fill_limiter_changed, limiter_changed, whole),
    LimiterDeleted: FactRow("limiter_deleted", fill_limiter_deleted, limiter_deleted, whole),
}
