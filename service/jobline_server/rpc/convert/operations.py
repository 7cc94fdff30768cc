"""Converts operations: who asks for one, and what those that are kept look like."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from jobline.v1 import admin_service_pb2 as pb
from jobline_server.engine import limits
from jobline_server.engine.operations import (
    NEWEST,
    OperationQuery,
    OperationState,
)
from jobline_server.rpc import limits as rpc_limits
from jobline_server.rpc.caller import CALLER
from jobline_server.rpc.client_rates import host_of
from jobline_server.rpc.convert.asked import as_json, kept
from jobline_server.rpc.validate import fields
from jobline_server.runtime.calls.operations import OperationView
from jobline_server.runtime.calls.undoable import why_not
from jobline_server.runtime.views import Audit
from jobline_server.wire.times import fill_time

# The caller where calls are not authenticated; then the host.
ANYBODY = "anonymous"


def audit(request: Any, context: Any, operation_id: str) -> Audit:
    """Returns who asks for a change, and why. The operation gets this id."""
    reason = fields.single_line(request.reason, "reason", limits.REASON_CHARACTERS_MAX)
    verb = request.DESCRIPTOR.name.removesuffix("Request")
    return Audit(principal_of(context), reason, verb, as_json(request), operation_id)


def principal_of(context: Any) -> str:
    """Returns who calls: an authenticated caller, or the host that the connection comes from, or
    "unix".
    """
    caller = CALLER.get()
    if caller is not None:
        return caller.principal[: rpc_limits.PRINCIPAL_CHARACTERS_MAX]
    host = unquote(host_of(context.peer()).removeprefix("ipv4:").removeprefix("ipv6:"))
    return f"{ANYBODY}@{host}"[: rpc_limits.PRINCIPAL_CHARACTERS_MAX]


def operation_query(request: pb.ListOperationsRequest, size: int, cursor: str) -> OperationQuery:
    """Returns which operations are asked for."""
    after_ms, before_ms = 0, NEWEST
    if request.HasField("start_time"):
        after_ms = fields.moment_ms(request.start_time, "start_time")
    if request.HasField("end_time"):
        before_ms = fields.moment_ms(request.end_time, "end_time")
        if before_ms < after_ms:
            raise fields.invalid("start_time", "not after end_time")
    return OperationQuery(
        id=fields.single_line(
            request.operation_id, "operation_id", rpc_limits.OPERATION_ID_CHARACTERS_MAX
        ),
        principal=fields.single_line(
            request.principal, "principal", rpc_limits.PRINCIPAL_CHARACTERS_MAX
        ),
        verb=fields.single_line(request.verb, "verb", rpc_limits.VERB_CHARACTERS_MAX),
        queue=fields.queue_name(request.queue) if request.queue else "",
        after_ms=after_ms,
        before_ms=before_ms,
        before=_number_of(cursor),
        limit=size,
    )


def _number_of(cursor: str) -> int:
    if not cursor:
        return NEWEST
    if not cursor.isdecimal() or len(cursor) > rpc_limits.CURSOR_DIGITS_MAX:
        raise fields.invalid("page_token", "is not of this list")
    return int(cursor)


def fill(message: pb.Operation, view: OperationView) -> None:
    """Fills a message with an operation."""
    operation = view.operation
    message.id = operation.id
    message.state = _state_of(view)
    message.verb = operation.verb
    message.principal = operation.principal
    message.reason = operation.reason
    message.queue = operation.queue
    message.group = operation.group
    message.limiter = operation.limiter
    message.schedule = operation.schedule
    message.batch_id = operation.batch_id
    message.request = kept(operation)
    fill_time(message.started_at, operation.began_ms)
    if operation.ended_ms:
        fill_time(message.ended_at, operation.ended_ms)
    message.count = operation.count
    message.requested = operation.requested
    message.not_undoable_because = why_not(view)
    message.undoable = not message.not_undoable_because
    message.undone_by = view.undone_by
    message.undoes = operation.undoes
    message.change = view.change


def _state_of(view: OperationView) -> pb.OperationState.ValueType:
    if view.is_running:
        return pb.OPERATION_STATE_RUNNING
    if view.operation.state is OperationState.DONE:
        return pb.OPERATION_STATE_DONE
    return pb.OPERATION_STATE_INTERRUPTED
