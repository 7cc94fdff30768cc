"""Facts of groups, between value and message."""

from __future__ import annotations

from jobline.v1 import entry_pb2
from jobline_server.engine.group_entries import (
    GroupChanged,
    GroupLimited,
    GroupPaused,
    GroupResumed,
)
from jobline_server.storage.codec.table import FactRow, FactTable, whole
from jobline_server.wire.groups import fill_group_settings, group_settings_from_message


def fill_group_changed(entry: entry_pb2.Entry, fact: GroupChanged) -> None:
    """Writes it into an entry."""
    message = entry.group_changed
    message.queue = fact.queue
    message.group = fact.group
    fill_group_settings(message.settings, fact.settings)
    message.number = fact.number


def group_changed(at_ms: int, message: entry_pb2.GroupChanged) -> GroupChanged:
    """Reads it."""
    settings = group_settings_from_message(message.settings)
    return GroupChanged(at_ms, message.queue, message.group, settings, message.number)


def fill_group_paused(entry: entry_pb2.Entry, fact: GroupPaused) -> None:
    """Writes it into an entry."""
    message = entry.group_paused
    message.queue = fact.queue
    message.group = fact.group
    message.principal = fact.principal
    message.reason = fact.reason
    message.number = fact.number


def group_paused(at_ms: int, message: entry_pb2.GroupPaused) -> GroupPaused:
    """Reads it."""
    return GroupPaused(
        at_ms=at_ms,
        queue=message.queue,
        group=message.group,
        principal=message.principal,
        reason=message.reason,
        number=message.number,
    )


def fill_group_resumed(entry: entry_pb2.Entry, fact: GroupResumed) -> None:
    """Writes it into an entry."""
    entry.group_resumed.queue = fact.queue
    entry.group_resumed.group = fact.group


def group_resumed(at_ms: int, message: entry_pb2.GroupResumed) -> GroupResumed:
    """Reads it."""
    return GroupResumed(at_ms=at_ms, queue=message.queue, group=message.group)


def fill_group_limited(entry: entry_pb2.Entry, fact: GroupLimited) -> None:
    """Writes it into an entry."""
    message = entry.group_limited
    message.queue = fact.queue
    message.group = fact.group
    message.until_ms = fact.until_ms
    message.principal = fact.principal
    message.reason = fact.reason
    message.number = fact.number
    message.is_used_up = fact.is_used_up
    message.leased_ids.extend(fact.leased)


def group_limited(at_ms: int, message: entry_pb2.GroupLimited) -> GroupLimited:
    """Reads it."""
    return GroupLimited(
        at_ms=at_ms,
        queue=message.queue,
        group=message.group,
        until_ms=message.until_ms,
        principal=message.principal,
        reason=message.reason,
        number=message.number,
        is_used_up=message.is_used_up,
        leased=list(message.leased_ids),
    )


FACTS: FactTable = {
    GroupLimited: FactRow("group_limited", fill_group_limited, group_limited, whole),
    GroupChanged: FactRow("group_changed", fill_group_changed, group_changed, whole),
    GroupPaused: FactRow("group_paused", fill_group_paused, group_paused, whole),
    GroupResumed: FactRow("group_resumed", fill_group_resumed, group_resumed, whole),
}
