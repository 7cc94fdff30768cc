"""What an operation was asked, as JSON: bounded, and without what is not to be seen."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from google.protobuf.json_format import MessageToDict, SerializeToJsonError

from jobline.v1 import webhook_service_pb2 as pb
from jobline_server.engine.operations import Operation
from jobline_server.rpc import limits as rpc_limits

# Ids of a request that are kept with its operation.
IDS_SHOWN = 20
# Fields of a request that its operation has of its own, or that nobody has to see.
_LEFT_OUT = ("reason", "dry_run", "payload", "secret")
# The URL of a webhook may hold a secret, which callers without `admin` are not told.
_OF_WEBHOOKS = (pb.CreateWebhookRequest, pb.UpdateWebhookRequest)
_VERBS_OF_WEBHOOKS = tuple(kind.DESCRIPTOR.name.removesuffix("Request") for kind in _OF_WEBHOOKS)


def as_json(request: Any) -> str:
    """Returns what was asked, bounded. JSON knows no time or span out of range: those that the call
    does not leave out are refused later, with the names of their fields.
    """
    shown = type(request)()
    shown.CopyFrom(request)
    for name in _LEFT_OUT:
        if name in shown.DESCRIPTOR.fields_by_name:
            shown.ClearField(name)
    if "jobs" in shown.DESCRIPTOR.fields_by_name:
        del shown.jobs.ids[IDS_SHOWN:]
    if "settings" in shown.DESCRIPTOR.fields_by_name and hasattr(shown.settings, "job"):
        shown.settings.job.ClearField("payload")
    if isinstance(shown, _OF_WEBHOOKS):
        shown.settings.ClearField("url")
    try:
        found = MessageToDict(shown, preserving_proto_field_name=True)
    except SerializeToJsonError:
        return ""
    return _text(found)[: rpc_limits.OPERATION_REQUEST_CHARACTERS_MAX]


def kept(operation: Operation) -> str:
    """Returns what an operation that is kept was asked: those of older servers have URLs."""
    if operation.verb in _VERBS_OF_WEBHOOKS:
        return without(operation.request, ("url",))
    return operation.request


def without(text: str, names: Collection[str]) -> str:
    """Returns what was asked without fields of these names, wherever they stand. A text that was
    cut is no JSON any more: it ends before the first of them.
    """
    # In a string of JSON the quotes would be escaped.
    places = [at for name in names if (at := text.find(f'"{name}":')) >= 0]
    if not places:
        return text
    try:
        return _text(_cleared(json.loads(text), names))
    except ValueError:
        return text[: min(places)]


def _cleared(value: Any, names: Collection[str]) -> Any:
    if isinstance(value, list):
        return [_cleared(one, names) for one in value]
    if isinstance(value, dict):
        return {key: _cleared(one, names) for key, one in value.items() if key not in names}
    return value


def _text(found: Any) -> str:
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))
