"""GroupSettings between message and value."""

from __future__ import annotations

from jobline.v1 import job_pb2, queue_pb2
from jobline_server.engine.group_settings import NO_GROUP_SETTINGS, GroupSettings, OnDeadHead
from jobline_server.wire.rates import fill_rate, rate_from_message


def group_settings_from_message(message: queue_pb2.GroupSettings) -> GroupSettings:
    """Returns the value of a GroupSettings message; `NO_GROUP_SETTINGS` if none is set."""
    has = message.HasField
    settings = GroupSettings(
        concurrency=message.concurrency if has("concurrency") else None,
        max_waiting=message.max_waiting if has("max_waiting") else None,
        on_dead_head=OnDeadHead(message.on_dead_head) if message.on_dead_head else None,
        weight=message.weight if has("weight") else None,
        rate=rate_from_message(message.rate) if has("rate") else None,
    )
    return NO_GROUP_SETTINGS if settings == NO_GROUP_SETTINGS else settings


def fill_group_settings(message: queue_pb2.GroupSettings, settings: GroupSettings) -> None:
    """Fills a GroupSettings message that is a field of another."""
    message.SetInParent()
    if settings.concurrency is not None:
        message.concurrency = settings.concurrency
    if settings.max_waiting is not None:
        message.max_waiting = settings.max_waiting
    if settings.on_dead_head is not None:
        message.on_dead_head = job_pb2.OnDeadHead.ValueType(settings.on_dead_head)
    if settings.weight is not None:
        message.weight = settings.weight
    if settings.rate is not None:
        fill_rate(message.rate, settings.rate)
