"""Converts update masks: which settings an update names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from google.protobuf.descriptor import Descriptor
from google.protobuf.field_mask_pb2 import FieldMask

from jobline.v1 import queue_service_pb2
from jobline_server.engine.commands import Refused
from jobline_server.rpc.validate import fields

Update = queue_service_pb2.UpdateQueueRequest | queue_service_pb2.UpdateGroupRequest


def paths_of(settings: Descriptor) -> dict[str, str]:
    """Returns the paths of a settings message, each with the name of its value: its own."""
    return {field.name: field.name for field in settings.fields}


def check_settings(request: Update, check: Callable[..., None]) -> None:
    """Checks the settings of an update, which has some or names those that become unset."""
    if not request.HasField("settings") and not request.update_mask.paths:
        raise fields.invalid("settings", "is required")
    try:
        check(request.settings)
    except Refused as refused:
        raise fields.within("settings", refused) from None


def masked(mask: FieldMask, paths: Mapping[str, str]) -> frozenset[str] | None:
    """Returns the names of the values that an update changes; None: all."""
    if not mask.paths or list(mask.paths) == ["*"]:
        return None
    for index, path in enumerate(mask.paths):
        if path not in paths:
            raise fields.invalid(f"update_mask.paths[{index}]", "is not the name of a setting")
    return frozenset(paths[path] for path in mask.paths)
