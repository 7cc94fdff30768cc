"""What a server sent as an error → one of `errors.py`.

Details travel as a `google.rpc.Status` in `grpc-status-details-bin`. The few messages of it that
are read here are described by hand in a descriptor pool of our own, field for field as googleapis
publishes them, so that the client needs grpcio and protobuf alone and never collides with another
copy of googleapis.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from jobline import errors
from jobline._printable import printable_line
from jobline._push import calls
from jobline._reaching import sentence_of
from jobline.errors import ErrorFacts, JoblineError

DETAILS_KEY = "grpc-status-details-bin"
DOMAIN = "jobline"

_PACKAGE = "jobline.rpc"  # not google.rpc: a private copy with the same wire format
_MESSAGES: dict[str, list[tuple[str, int, str]]] = {
    # message: (field, number, type); "x*" is repeated
    "Any": [("type_url", 1, "string"), ("value", 2, "bytes")],
    "Duration": [("seconds", 1, "int64"), ("nanos", 2, "int32")],
    "Status": [("code", 1, "int32"), ("message", 2, "string"), ("details", 3, "Any*")],
    "MetadataEntry": [("key", 1, "string"), ("value", 2, "string")],
    "ErrorInfo": [
        ("reason", 1, "string"),
        ("domain", 2, "string"),
        ("metadata", 3, "MetadataEntry*"),  # a map is a list of entries on the wire
    ],
    "FieldViolation": [("field", 1, "string"), ("description", 2, "string")],
    "BadRequest": [("field_violations", 1, "FieldViolation*")],
    "QuotaViolation": [("subject", 1, "string"), ("description", 2, "string")],
    "QuotaFailure": [("violations", 1, "QuotaViolation*")],
    "RetryInfo": [("retry_delay", 1, "Duration")],
}


def _describe() -> dict[str, Any]:
    """Returns the message classes by name, made from the table above."""
    kinds = descriptor_pb2.FieldDescriptorProto
    scalars = {
        "string": kinds.TYPE_STRING,
        "bytes": kinds.TYPE_BYTES,
        "int32": kinds.TYPE_INT32,
        "int64": kinds.TYPE_INT64,
    }
    file = descriptor_pb2.FileDescriptorProto(
        name="jobline/rpc/status.proto", package=_PACKAGE, syntax="proto3"
    )
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for name, number, marked in fields:
            kind = marked.rstrip("*")
            entry = message.field.add(name=name, number=number)
            entry.label = kinds.LABEL_OPTIONAL if kind == marked else kinds.LABEL_REPEATED
            entry.type = scalars.get(kind, kinds.TYPE_MESSAGE)
            if kind not in scalars:
                entry.type_name = f".{_PACKAGE}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


_CLASSES = _describe()

# Reason → class. A reason that is not here falls back to the class of its status code.
_BY_REASON: dict[str, type[JoblineError]] = {
    "JOB_NOT_FOUND": errors.JobNotFound,
    "QUEUE_NOT_FOUND": errors.QueueNotFound,
    "LIMITER_NOT_FOUND": errors.LimiterNotFound,
    "BATCH_NOT_FOUND": errors.BatchNotFound,
    "BATCH_COMPLETE": errors.BatchComplete,
    "BATCHES_FULL": errors.BatchesFull,
    "LIMITERS_FULL": errors.LimitersFull,
    "WEBHOOK_NOT_FOUND": errors.WebhookNotFound,
    "WEBHOOK_EXISTS": errors.WebhookExists,
    "WEBHOOKS_FULL": errors.WebhooksFull,
    "SCHEDULE_NOT_FOUND": errors.ScheduleNotFound,
    "SCHEDULE_EXISTS": errors.ScheduleExists,
    "SCHEDULES_FULL": errors.SchedulesFull,
    "IDEMPOTENCY_MISMATCH": errors.IdempotencyMismatch,
    "UNIQUE_KEY_HELD": errors.UniqueKeyHeld,
    "WRONG_STATE": errors.WrongState,
    "LEASE_LOST": errors.LeaseLost,
    "QUEUE_ACTIVE": errors.QueueActive,
    "QUEUE_NOT_CREATED": errors.QueueNotCreated,
    "PROTOCOL_MISTAKE": errors.ProtocolMistake,
    "GROUPS_FULL": errors.GroupsFull,
    "GROUP_FULL": errors.GroupFull,
    "QUEUE_FULL": errors.QueueFull,
    "SERVER_FULL": errors.ServerFull,
    "KEYS_FULL": errors.KeysFull,
    "REQUEST_IDS_FULL": errors.KeysFull,
    "PRODUCERS_FULL": errors.KeysFull,
    "DEPENDENCIES_FULL": errors.ServerFull,
    "DISK_FULL": errors.DiskFull,
    "CLIENT_RATE": errors.ClientRateExceeded,
    "TOO_LARGE": errors.TooLarge,
    "TOO_MANY_CALLS": errors.TooManyCalls,
    "OFFSET_GONE": errors.OffsetGone,
    "PAYLOAD_MISFIT": errors.PayloadMisfit,
    "OPERATION_NOT_FOUND": errors.OperationNotFound,
    "NOT_UNDOABLE": errors.NotUndoable,
    "ALREADY_UNDONE": errors.AlreadyUndone,
    "CHANGED_SINCE": errors.ChangedSince,
    "BACKUP_RUNNING": errors.BackupRunning,
    "NO_BACKUP_DESTINATION": errors.NoBackupDestination,
}

_BY_CODE: dict[str, type[JoblineError]] = {
    "INVALID_ARGUMENT": errors.InvalidArgument,
    "NOT_FOUND": errors.NotFound,
    "ALREADY_EXISTS": errors.AlreadyExists,
    "FAILED_PRECONDITION": errors.FailedPrecondition,
    "OUT_OF_RANGE": errors.OutOfRange,
    "UNIMPLEMENTED": errors.NotServed,
    "PERMISSION_DENIED": errors.PermissionDenied,
    "UNAUTHENTICATED": errors.Unauthenticated,
    "RESOURCE_EXHAUSTED": errors.ResourceExhausted,
    "UNAVAILABLE": errors.Unavailable,
    "CANCELLED": errors.Unavailable,  # the other side hung up: this side raises CancelledError
    "ABORTED": errors.Unavailable,
    "DEADLINE_EXCEEDED": errors.DeadlineExceeded,
    "DATA_LOSS": errors.DataLoss,
}


def error_from_rpc(error: grpc.RpcError) -> JoblineError:
    """Returns the typed error of what gRPC raised, from blocking and asyncio calls alike."""
    known: Any = error  # the parts below are not in the base class, but on all that are raised
    code = known.code() if hasattr(known, "code") else None
    metadata = known.trailing_metadata() if hasattr(known, "trailing_metadata") else None
    message = (known.details() if hasattr(known, "details") else None) or str(error)
    name = code.name if code is not None else "UNKNOWN"
    return error_from_status(name, sentence_of(message), metadata)


def error_from_status(
    code: str, message: str, metadata: Iterable[tuple[str, str | bytes]] | None = None
) -> JoblineError:
    """Returns the typed error of a status code, its message and the trailing metadata."""
    facts = facts_from_metadata(code, metadata)
    kind = _BY_REASON.get(facts.reason) or _BY_CODE.get(code, errors.Internal)
    error = kind(printable_line(message), facts)
    # The option `timeout` is an `attempt_timeout` here: calls have timeouts, too.
    field = error.field or ""
    if field.endswith("options.timeout"):
        return error.about(f"{field.removesuffix('timeout')}attempt_timeout")
    return error


def facts_from_metadata(
    code: str, metadata: Iterable[tuple[str, str | bytes]] | None
) -> ErrorFacts:
    """Returns the details of an error; damaged ones count as none, since the code alone is enough
    to act on.
    """
    raw = next((value for key, value in metadata or () if key == DETAILS_KEY), None)
    if not isinstance(raw, bytes):
        return ErrorFacts(code=code)
    try:
        return _facts_from_details(code, _CLASSES["Status"].FromString(raw).details)
    except DecodeError:
        return ErrorFacts(code=code)


def _facts_from_details(code: str, details: Iterable[Any]) -> ErrorFacts:
    reason = ""
    known: dict[str, str] = {}
    fields: dict[str, str] = {}
    retry_after: float | None = None
    for detail in details:
        kind = detail.type_url.rpartition(".")[2]
        if not detail.type_url.endswith(f"google.rpc.{kind}"):
            continue
        if kind == "ErrorInfo":
            info = _CLASSES[kind].FromString(detail.value)
            if info.domain == DOMAIN:
                reason = info.reason
                known.update((entry.key, entry.value) for entry in info.metadata)
        elif kind == "BadRequest":
            violations = _CLASSES[kind].FromString(detail.value).field_violations
            fields.update((violation.field, violation.description) for violation in violations)
        elif kind == "QuotaFailure":
            quotas = _CLASSES[kind].FromString(detail.value).violations
            known.update((f"quota:{quota.subject}", quota.description) for quota in quotas)
        elif kind == "RetryInfo":
            delay = _CLASSES[kind].FromString(detail.value).retry_delay
            retry_after = delay.seconds + delay.nanos / 1e9
    return ErrorFacts(reason, code, fields, retry_after, known)


def outcome_unknown(
    error: JoblineError, *, request_id: str | None = None, tries: int = 1
) -> JoblineError:
    """Returns the error of a write: a definite error as it is, any other as `OutcomeUnknown`
    (guarantee G5).
    """
    if calls.is_definite(error, tries):
        return error
    unknown = errors.OutcomeUnknown(
        f"the outcome is not known: {error.message}", error.facts, request_id=request_id
    )
    unknown.__cause__ = error
    return unknown


def raise_unknown(
    error: JoblineError, *, request_id: str | None = None, tries: int = 1
) -> NoReturn:
    """Raises what `outcome_unknown` makes of an error, with the cause that it has."""
    raised = outcome_unknown(error, request_id=request_id, tries=tries)
    try:
        raise raised from raised.__cause__
    finally:
        del error, raised  # an error that its own traceback holds is freed late, with its request
