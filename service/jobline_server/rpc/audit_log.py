"""The audit log: one line for each call by which an operator changed something, with the reason
given and the id under which the operation is kept. A trial (`dry_run`) changes nothing and is not
logged.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.json_format import MessageToDict

from jobline_server.rpc.caller import CALLER
from jobline_server.telemetry.log import logger

LOG = logger("operations")

Unary = Callable[[Any, Any], Awaitable[Any]]
# The fields of request and response that a line has, and their names in it.
_ASKED = ("queue", "group", "limiter", "schedule", "webhook", "id", "reason")
_DONE = {
    "count": "count",
    "cancelled": "count",
    "requested": "active_told_to_stop",
    "operation_id": "operation_id",
}


def is_operation(method: MethodDescriptor) -> bool:
    """Returns whether a method takes a reason, as all methods do by which operators change
    something.
    """
    return "reason" in method.input_type.fields_by_name


def logged(method: MethodDescriptor, function: Unary) -> Unary:
    """Returns the method, wrapped to log what it did."""
    asked = _fields_of(method.input_type, _ASKED)
    done = _fields_of(method.output_type, tuple(_DONE))
    by_selection = "jobs" in method.input_type.fields_by_name
    by_filter = "filter" in method.input_type.fields_by_name

    async def operate(request: Any, context: Any) -> Any:
        response = await function(request, context)
        if not getattr(request, "dry_run", False):
            values = {name: getattr(request, name) for name in asked}
            if by_selection or by_filter:
                values["jobs"] = _chosen(request.jobs if by_selection else request)
            values.update((_DONE[name], getattr(response, name)) for name in done)
            caller = CALLER.get()
            if caller is not None:
                values["principal"] = caller.principal
            LOG.info("operation", method=method.name, **values)
        return response

    return operate


def _chosen(selection: Any) -> Any:
    """Returns which jobs were meant: the number of ids, the conditions of a filter, or "all"."""
    ids = len(getattr(selection, "ids", ()))
    if ids:
        return f"{ids} ids"
    return MessageToDict(selection.filter, preserving_proto_field_name=True) or "all"


def _fields_of(message: Any, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if name in message.fields_by_name]
