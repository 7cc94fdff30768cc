"""Converts groups and their settings."""

from __future__ import annotations

from jobline.v1 import queue_pb2, queue_service_pb2
from jobline_server.engine import limits
from jobline_server.engine.commands import Refused
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.rpc.validate import fields
from jobline_server.rpc.validate.options import check_group_settings
from jobline_server.runtime.views import GroupView
from jobline_server.wire.groups import fill_group_settings, group_settings_from_message

PATHS = frozenset(field.name for field in queue_pb2.GroupSettings.DESCRIPTOR.fields)


def group_name(value: str) -> str:
    """Returns the name of a group, which is required."""
    return fields.required_line(value, "group", limits.NAME_CHARACTERS_MAX)


def settings_change(
    request: queue_service_pb2.UpdateGroupRequest,
) -> tuple[GroupSettings, frozenset[str] | None]:
    """Returns the new settings, and the names of those that change; None: all."""
    if not request.HasField("settings") and not request.update_mask.paths:
        raise fields.invalid("settings", "is required")
    try:
        check_group_settings(request.settings)
    except Refused as refused:
        raise fields.within("settings", refused) from None
    return group_settings_from_message(request.settings), _mask(request)


def _mask(request: queue_service_pb2.UpdateGroupRequest) -> frozenset[str] | None:
    paths = request.update_mask.paths
    if not paths or list(paths) == ["*"]:
        return None
    for index, path in enumerate(paths):
        if path not in PATHS:
            raise fields.invalid(
                f"update_mask.paths[{index}]", "is not the name of a field of GroupSettings"
            )
    return frozenset(paths)


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
