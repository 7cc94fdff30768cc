"""Converts groups and their settings."""

from __future__ import annotations

from jobline.v1 import queue_pb2, queue_service_pb2
from jobline_server.engine import limits
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.rpc.convert.jobs import fill_moment
from jobline_server.rpc.convert.masks import check_settings, masked, paths_of
from jobline_server.rpc.validate import fields
from jobline_server.rpc.validate.options import check_group_settings
from jobline_server.runtime.views import GroupView
from jobline_server.wire.groups import fill_group_settings, group_settings_from_message
from jobline_server.wire.times import fill_time

PATHS = paths_of(queue_pb2.GroupSettings.DESCRIPTOR)


def group_name(value: str) -> str:
    """Returns the name of a group, which is required."""
    return fields.required_line(value, "group", limits.NAME_CHARACTERS_MAX)


def settings_change(
    request: queue_service_pb2.UpdateGroupRequest,
) -> tuple[GroupSettings, frozenset[str] | None]:
    """Returns the new settings, and the names of those that change; None: all."""
    check_settings(request, check_group_settings)
    return group_settings_from_message(request.settings), masked(request.update_mask, PATHS)


def fill_group(message: queue_pb2.Group, view: GroupView) -> None:
    """Fills a Group message."""
    message.queue = view.queue
    message.group = view.name
    fill_group_settings(message.settings, view.settings)
    message.ready = view.ready
    message.active = view.active
    message.scheduled = view.scheduled
    message.paused = view.paused
    message.paused_by = view.paused_by
    message.pause_reason = view.pause_reason
    message.dead_heads.extend(view.dead_heads)
    if view.weight:
        message.weight = view.weight
        fill_time(message.worker_time, view.worker_time_ms)
    if view.limited is not None:
        fill_moment(message.limited_until, view.limited.until_ms)
        message.limited_by = view.limited.by
        message.limited_reason = view.limited.reason
    if view.tokens is not None:
        message.tokens = view.tokens
