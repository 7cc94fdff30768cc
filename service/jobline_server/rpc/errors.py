"""One table from refusals to gRPC statuses with `google.rpc` details.

The codes are those of guarantee G5. Definite ones mean that nothing was stored; `UNAVAILABLE`,
`DATA_LOSS` and `INTERNAL` leave the outcome unknown. Only the message of a
`Refused` reaches a caller: no text of other exceptions, no payload, no path, no stack.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from jobline_server.engine.commands import RefusalKind, Refused

DOMAIN = "jobline"
DETAILS_KEY = "grpc-status-details-bin"
MESSAGE_CHARACTERS_MAX = 1_024

CODES: dict[RefusalKind, grpc.StatusCode] = {
    RefusalKind.INVALID_FIELD: grpc.StatusCode.INVALID_ARGUMENT,
    RefusalKind.INVALID_PAGE_TOKEN: grpc.StatusCode.INVALID_ARGUMENT,
    RefusalKind.NOT_SERVED: grpc.StatusCode.UNIMPLEMENTED,
    RefusalKind.JOB_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    RefusalKind.QUEUE_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    RefusalKind.QUEUE_NOT_CREATED: grpc.StatusCode.FAILED_PRECONDITION,
    RefusalKind.IDEMPOTENCY_MISMATCH: grpc.StatusCode.ALREADY_EXISTS,
    RefusalKind.UNIQUE_KEY_HELD: grpc.StatusCode.ALREADY_EXISTS,
    RefusalKind.WRONG_STATE: grpc.StatusCode.FAILED_PRECONDITION,
    RefusalKind.LEASE_LOST: grpc.StatusCode.FAILED_PRECONDITION,
    RefusalKind.QUEUE_ACTIVE: grpc.StatusCode.FAILED_PRECONDITION,
    RefusalKind.QUEUE_FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
    RefusalKind.GROUP_FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
    RefusalKind.GROUPS_FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
    RefusalKind.SERVER_FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
    RefusalKind.KEYS_FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
    RefusalKind.REQUEST_IDS_FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
    RefusalKind.PRODUCERS_FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
    RefusalKind.DEPENDENCIES_FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
    RefusalKind.JOB_AWAITED: grpc.StatusCode.FAILED_PRECONDITION,
    RefusalKind.CALL_OVER: grpc.StatusCode.FAILED_PRECONDITION,
    RefusalKind.DISK_FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
    RefusalKind.TOO_LARGE: grpc.StatusCode.RESOURCE_EXHAUSTED,
    RefusalKind.TOO_MANY_CALLS: grpc.StatusCode.RESOURCE_EXHAUSTED,
    RefusalKind.DRAINING: grpc.StatusCode.UNAVAILABLE,
    RefusalKind.OFFSET_GONE: grpc.StatusCode.OUT_OF_RANGE,
    RefusalKind.PROTOCOL_MISTAKE: grpc.StatusCode.FAILED_PRECONDITION,
    RefusalKind.SESSION_TAKEN: grpc.StatusCode.FAILED_PRECONDITION,
    RefusalKind.DATA_LOSS: grpc.StatusCode.DATA_LOSS,
    RefusalKind.STORAGE_FAILED: grpc.StatusCode.UNAVAILABLE,
    RefusalKind.SHARD_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    RefusalKind.PAYLOAD_MISFIT: grpc.StatusCode.INVALID_ARGUMENT,
    RefusalKind.LIMITER_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    RefusalKind.LIMITERS_FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
    RefusalKind.BATCH_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    RefusalKind.BATCH_COMPLETE: grpc.StatusCode.FAILED_PRECONDITION,
    RefusalKind.BATCHES_FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
    RefusalKind.CLIENT_RATE: grpc.StatusCode.RESOURCE_EXHAUSTED,
    RefusalKind.SCHEDULE_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    RefusalKind.SCHEDULE_EXISTS: grpc.StatusCode.ALREADY_EXISTS,
    RefusalKind.SCHEDULES_FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
    RefusalKind.WEBHOOK_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    RefusalKind.WEBHOOK_EXISTS: grpc.StatusCode.ALREADY_EXISTS,
    RefusalKind.WEBHOOKS_FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
    RefusalKind.BAD_SIGNATURE: grpc.StatusCode.UNAUTHENTICATED,
    RefusalKind.OPERATION_NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    RefusalKind.NOT_UNDOABLE: grpc.StatusCode.FAILED_PRECONDITION,
    RefusalKind.ALREADY_UNDONE: grpc.StatusCode.FAILED_PRECONDITION,
    RefusalKind.CHANGED_SINCE: grpc.StatusCode.FAILED_PRECONDITION,
    RefusalKind.BACKUP_RUNNING: grpc.StatusCode.FAILED_PRECONDITION,
    RefusalKind.NO_BACKUP_DESTINATION: grpc.StatusCode.FAILED_PRECONDITION,
}

# Refusals because a quota is used up: their details name the quota.
QUOTAS = frozenset(
    {
        RefusalKind.QUEUE_FULL,
        RefusalKind.GROUP_FULL,
        RefusalKind.GROUPS_FULL,
        RefusalKind.SERVER_FULL,
        RefusalKind.KEYS_FULL,
        RefusalKind.LIMITERS_FULL,
        RefusalKind.SCHEDULES_FULL,
        RefusalKind.WEBHOOKS_FULL,
        RefusalKind.REQUEST_IDS_FULL,
        RefusalKind.PRODUCERS_FULL,
        RefusalKind.DEPENDENCIES_FULL,
        RefusalKind.DISK_FULL,
        RefusalKind.TOO_MANY_CALLS,
        RefusalKind.CLIENT_RATE,
    }
)


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a failed call: code, message and trailing metadata."""

    code: grpc.StatusCode
    message: str
    metadata: tuple[tuple[str, bytes], ...]


class StatusError(Exception):
    """Ends a call of another protocol (health) with one of its statuses."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


def status_of(refused: Refused) -> Status:
    """Returns the status of a refusal."""
    details: list[Message] = []
    if refused.field:
        details.append(_bad_request(refused.field, refused.message))
    if refused.kind in QUOTAS:
        details.append(_quota_failure(refused))
    if refused.retry_after_ms is not None:
        details.append(_retry_info(refused.retry_after_ms))
    message = f"{refused.field}: {refused.message}" if refused.field else refused.message
    return make_status(CODES[refused.kind], refused.kind.value, message, details)


def overload_status(retry_after_ms: int) -> Status:
    """Returns the status of a call that an overload refuses. It has only what a caller needs:
    with a QuotaFailure, a refusal would cost a tenth more.
    """
    kind, details = RefusalKind.TOO_MANY_CALLS, [_retry_info(retry_after_ms)]
    return make_status(CODES[kind], kind.value, "the server has too many calls", details)


def malformed_status() -> Status:
    """Returns the status for a message that could not be decoded."""
    return make_status(
        grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_MESSAGE", "the message could not be decoded"
    )


def bug_status(incident: str) -> Status:
    """Returns the status for a bug; `incident` identifies the log line with the stack."""
    return make_status(
        grpc.StatusCode.INTERNAL, "BUG", f"a bug in the server, logged as {incident}"
    )


def make_status(
    code: grpc.StatusCode,
    reason: str,
    message: str,
    details: list[Message] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Status:
    """Returns a status with these details, and an ErrorInfo if it has a reason. `metadata`: what
    the ErrorInfo says beside the reason.
    """
    message = message[:MESSAGE_CHARACTERS_MAX]
    if not reason:
        return Status(code, message, ())
    status = status_pb2.Status(code=code.value[0], message=message)
    info = error_details_pb2.ErrorInfo(reason=reason, domain=DOMAIN, metadata=metadata)
    for detail in [info, *(details or ())]:
        packed = Any()
        packed.Pack(detail)
        status.details.append(packed)
    return Status(code, message, ((DETAILS_KEY, status.SerializeToString()),))


def _bad_request(field: str, description: str) -> Message:
    violation = error_details_pb2.BadRequest.FieldViolation(field=field, description=description)
    request: Message = error_details_pb2.BadRequest(field_violations=[violation])
    return request


def _quota_failure(refused: Refused) -> Message:
    violation = error_details_pb2.QuotaFailure.Violation(
        subject=refused.kind.value.lower(), description=refused.message
    )
    failure: Message = error_details_pb2.QuotaFailure(violations=[violation])
    return failure


def _retry_info(retry_after_ms: int) -> Message:
    delay = Duration()
    delay.FromMilliseconds(retry_after_ms)
    info: Message = error_details_pb2.RetryInfo(retry_delay=delay)
    return info
