"""Converts acks, fails, releases and extends, for calls and for streams.

The functions take a repeated field, and its name for error messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from google.protobuf.message import Message

from jobline.v1 import job_pb2, job_service_pb2
from jobline_server.engine import limits
from jobline_server.engine.commands import (
    ExtendItem,
    FailItem,
    FailResult,
    NotDone,
    Refused,
    ReleaseItem,
)
from jobline_server.engine.job_log import NewLine
from jobline_server.engine.values import FailAction, JobError, ReleaseReason
from jobline_server.rpc import limits as rpc_limits
from jobline_server.rpc.convert.logs import new_lines
from jobline_server.rpc.validate import fields
from jobline_server.rpc.validate.limits import check_name
from jobline_server.rpc.validate.mistyped import check_own_fields
from jobline_server.rpc.validate.options import backoff_ms, lease_ms
from jobline_server.wire.times import fill_time

NO_ERROR = JobError()

M = TypeVar("M")
V = TypeVar("V")

# Reasons that only the server itself uses.
_SERVERS = frozenset({ReleaseReason.UNDELIVERED})


def acks(
    ids: list[int],
    deliveries: list[int],
    items: Sequence[job_service_pb2.AckItem],
    *,
    deliveries_field: str = "deliveries",
    items_field: str = "items",
) -> dict[int, bytes]:
    """Appends the items to the columns `ids` and `deliveries`; returns the results by id."""
    if len(ids) != len(deliveries):
        raise fields.invalid(deliveries_field, "must be as many as the ids")
    if len(ids) + len(items) > limits.SETTLE_ITEMS_MAX:
        raise fields.too_large(items_field, f"at most {limits.SETTLE_ITEMS_MAX} in one call")
    results: dict[int, bytes] = {}
    if not items:
        return results
    for index, item in enumerate(items):
        result = item.result
        if len(result) > limits.RESULT_BYTES_MAX:
            raise fields.too_large(
                f"{items_field}[{index}].result", f"at most {limits.RESULT_BYTES_MAX} bytes"
            )
        _check_types(item, items_field, index)
        job_id = item.id
        ids.append(job_id)
        deliveries.append(item.delivery)
        if result:
            results[job_id] = result
    if results and len(set(ids)) != len(ids):
        # A result belongs to one lease, and results are found by id.
        raise fields.invalid(items_field, "a job may stand in one ack only once")
    return results


def fails(items: Sequence[job_service_pb2.FailItem], field: str = "items") -> list[FailItem]:
    """Returns the values of fails."""
    return _each(items, field, _fail)


def _fail(item: job_service_pb2.FailItem) -> FailItem:
    check_own_fields(item)
    return FailItem(
        item.id,
        item.delivery,
        job_error(item.error) if item.HasField("error") else NO_ERROR,
        fields.enum_member(item.then, "then", FailAction) or FailAction.RETRY,
        backoff_ms(item.retry_after, "retry_after") if item.HasField("retry_after") else None,
    )


def job_error(message: job_pb2.JobError) -> JobError:
    """Returns the value of an error. Long texts are cut, so that a job can always fail."""
    try:
        check_own_fields(message)
        return JobError(
            type=fields.single_line(message.type, "type", limits.NAME_CHARACTERS_MAX),
            message=fields.cut_text(message.message, limits.ERROR_MESSAGE_BYTES_MAX),
            stack=fields.cut_text(message.stack, limits.ERROR_STACK_BYTES_MAX),
            details=message.details[: rpc_limits.ERROR_DETAILS_BYTES_MAX],
        )
    except Refused as refused:
        raise fields.within("error", refused) from None


def releases(
    items: Sequence[job_service_pb2.ReleaseItem], field: str = "items"
) -> list[ReleaseItem]:
    """Returns the values of releases."""
    return _each(items, field, _release)


def _release(item: job_service_pb2.ReleaseItem) -> ReleaseItem:
    check_own_fields(item)
    limited = _limited(item) if item.limiter or item.HasField("until") else (0, "")
    if item.HasField("delay") and item.why == job_service_pb2.RELEASE_REASON_CRASHED:
        raise fields.invalid("delay", "is the job's own backoff where it has CRASHED")
    return ReleaseItem(
        item.id,
        item.delivery,
        fields.duration_ms(item.delay, "delay", 0, limits.DELAY_MS_MAX)
        if item.HasField("delay")
        else 0,
        fields.enum_member(item.why, "why", ReleaseReason, but=_SERVERS)
        or ReleaseReason.INTERRUPTED,
        *limited,
    )


def _limited(item: job_service_pb2.ReleaseItem) -> tuple[int, str]:
    """Returns until when a worker says that a limiter lets nothing out, and its name, "" for the
    job's queue.
    """
    if item.why != job_service_pb2.RELEASE_REASON_LIMITED:
        raise fields.invalid("limiter" if item.limiter else "until", "only with LIMITED")
    if item.limiter:
        check_name(item.limiter, "limiter")
    if not item.HasField("until"):
        raise fields.invalid("until", "is required with a limiter")
    return fields.moment_ms(item.until, "until"), item.limiter


def extends(items: Sequence[job_service_pb2.ExtendItem], field: str = "items") -> list[ExtendItem]:
    """Returns the values of extends."""
    return _each(items, field, _extend)


def _extend(item: job_service_pb2.ExtendItem) -> ExtendItem:
    check_own_fields(item)
    if len(item.partial) > limits.PARTIAL_BYTES_MAX:
        raise fields.too_large("partial", f"at most {limits.PARTIAL_BYTES_MAX} bytes")
    has = item.HasField
    checkpoint = item.checkpoint if has("checkpoint") else None
    if checkpoint is not None and len(checkpoint) > limits.CHECKPOINT_BYTES_MAX:
        raise fields.too_large("checkpoint", f"at most {limits.CHECKPOINT_BYTES_MAX} bytes")
    return ExtendItem(
        item.id,
        item.delivery,
        lease_ms(item.lease, "lease") if has("lease") else None,
        fields.real(item.progress, "progress", 0, 100) if has("progress") else None,
        fields.cut_text(item.message, rpc_limits.PROGRESS_MESSAGE_BYTES_MAX)
        if has("message")
        else None,
        checkpoint,
        _lines(item.logs) if has("logs") else (),
        fields.single_line(item.phase, "phase", limits.PHASE_NAME_CHARACTERS_MAX),
        _phase_result(item),
        item.partial,
    )


def _phase_result(item: job_service_pb2.ExtendItem) -> bytes:
    result = item.phase_result
    if result and not item.phase:
        raise fields.invalid("phase", "is required with a result")
    if len(result) > limits.PHASE_RESULTS_BYTES_MAX:
        raise fields.too_large("phase_result", f"at most {limits.PHASE_RESULTS_BYTES_MAX} bytes")
    return result


def _lines(message: job_pb2.LogLines) -> list[NewLine]:
    try:
        return new_lines(message)
    except Refused as refused:
        raise fields.within("logs", refused) from None


def _each(items: Sequence[M], field: str, convert: Callable[[M], V]) -> list[V]:
    fields.at_most(items, field, limits.SETTLE_ITEMS_MAX)
    found = []
    for index, item in enumerate(items):
        try:
            found.append(convert(item))
        except Refused as refused:
            raise fields.within(f"{field}[{index}]", refused) from None
    return found


def _check_types(item: Message, field: str, index: int) -> None:
    try:
        check_own_fields(item)
    except Refused as refused:
        raise fields.within(f"{field}[{index}]", refused) from None


def fill_exceptions(
    message: job_service_pb2.AckResponse
    | job_service_pb2.ReleaseResponse
    | job_service_pb2.ExtendResponse
    | job_service_pb2.StreamConfirm,
    exceptions: NotDone,
) -> None:
    """Adds the outcomes that are not DONE to a response."""
    add = message.exceptions.add
    for index, outcome in exceptions:
        row = add()
        row.index = index
        row.outcome = job_service_pb2.SettleOutcome.ValueType(outcome)


def fail_response(results: list[FailResult]) -> job_service_pb2.FailResponse:
    """Returns the response with the new state of each failed job."""
    response = job_service_pb2.FailResponse()
    for result in results:
        row = response.results.add()
        row.outcome = job_service_pb2.SettleOutcome.ValueType(result.outcome)
        if result.state is not None:
            row.state = job_pb2.JobState.ValueType(result.state)
        if result.run_at_ms:
            fill_time(row.run_at, result.run_at_ms)
    return response
