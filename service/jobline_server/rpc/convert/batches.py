"""Converts batches and their callbacks."""

from __future__ import annotations

from jobline.v1 import batch_service_pb2 as pb
from jobline.v1 import job_pb2, job_service_pb2
from jobline_server.engine import limits
from jobline_server.engine.batches import Batch, BatchCall, BatchSpec, Callback, MemberEnd
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.batches import BATCH_HEADER
from jobline_server.engine.ties import NO_TIES
from jobline_server.rpc.convert.jobs import fill_moment
from jobline_server.rpc.convert.push import PushReader
from jobline_server.rpc.validate import fields
from jobline_server.rpc.validate.options import check_tags
from jobline_server.runtime.calls.batches import BatchFilter

# Whether a batch in a state is (closed, complete).
_STATES = {
    pb.BATCH_STATE_OPEN: (False, False),
    pb.BATCH_STATE_CLOSED: (True, False),
    pb.BATCH_STATE_COMPLETE: (True, True),
}


def batch_spec(request: pb.CreateBatchRequest, reader: PushReader) -> BatchSpec:
    """Returns what a batch is created with."""
    check_tags(request.tags, "tags")
    return BatchSpec(
        name=fields.single_line(request.name, "name", limits.NAME_CHARACTERS_MAX),
        tags=tuple(sorted(set(request.tags))),
        parent=request.parent_id,
        request_id=fields.key(request.request_id, "request_id", limits.REQUEST_ID_BYTES_MAX),
        on_success=_callback(request, "on_success", reader),
        on_complete=_callback(request, "on_complete", reader),
        on_first_death=_callback(request, "on_first_death", reader),
    )


def _callback(request: pb.CreateBatchRequest, name: str, reader: PushReader) -> Callback | None:
    if not request.HasField(name):  # type: ignore[arg-type]  # one of three names
        return None
    try:
        return _callback_of(getattr(request, name), reader)
    except Refused as refused:
        # It is checked as the only job of a push.
        refused.field = f"{name}.{refused.field.removeprefix('jobs[0].')}"
        raise


def _callback_of(message: pb.BatchCallback, reader: PushReader) -> Callback:
    if message.options.depends_on:
        raise fields.invalid("options.depends_on", "a callback depends on its batch alone")
    if message.options.batch_id:
        raise fields.invalid("options.batch_id", "a callback is a member of no batch")
    if BATCH_HEADER in message.options.headers:
        raise fields.invalid("options.headers", f"{BATCH_HEADER} is set by the server")
    if len(message.options.headers) >= limits.HEADERS_MAX:
        raise fields.invalid("options.headers", "the server adds one: at most 63")
    delay_ms = 0
    if message.HasField("delay"):
        delay_ms = fields.duration_ms(message.delay, "delay", 0, limits.DELAY_MS_MAX)
    payload = message.data or message.text.encode()
    if len(payload) > limits.CALLBACK_PAYLOAD_BYTES_MAX:
        raise fields.too_large(
            "payload", f"must be at most {limits.CALLBACK_PAYLOAD_BYTES_MAX} bytes"
        )
    job = job_pb2.NewJob(data=payload, options=message.options)
    if delay_ms:
        job.delay.CopyFrom(message.delay)
    command = reader.command(job_service_pb2.PushRequest(queue=message.queue, jobs=[job]))
    rows = command.rows
    ties = rows.ties[0] if rows.ties else NO_TIES
    options = rows.options[0] if rows.options else command.options
    return Callback(
        message.queue, 0, options, payload, ties.group, ties.unique_key, delay_ms=delay_ms
    )


def batch_id_of(request: pb.GetBatchRequest | pb.CloseBatchRequest | pb.CancelBatchRequest) -> int:
    """Returns the id of a batch, which is required."""
    if not request.id:
        raise fields.invalid("id", "is required")
    return request.id


def batch_filter(request: pb.ListBatchesRequest) -> BatchFilter:
    """Returns the conditions of a list."""
    for index, state in enumerate(request.states):
        if state not in _STATES:
            raise fields.invalid(f"states[{index}]", "is not a known value")
    check_tags(request.tags, "tags")
    return BatchFilter(
        states=frozenset(_STATES[state] for state in request.states),
        name=fields.single_line(request.name, "name", limits.NAME_CHARACTERS_MAX),
        tags=frozenset(request.tags),
        parent=request.parent_id,
    )


def after_id(cursor: str) -> int:
    """Returns the id of the last batch of the page before; 0 without one."""
    if not cursor:
        return 0
    if not cursor.isdecimal() or len(cursor) > 20:  # digits of 64 bits
        message = "is not one of this server's"
        raise Refused(RefusalKind.INVALID_PAGE_TOKEN, message, field="page_token")
    return int(cursor)


def fill_batch(message: pb.Batch, batch: Batch) -> None:
    """Fills a Batch message."""
    message.id = batch.id
    message.name = batch.spec.name
    message.tags.extend(batch.spec.tags)
    message.parent_id = batch.spec.parent
    message.state = pb.BATCH_STATE_OPEN
    if batch.completed_ms:
        message.state = pb.BATCH_STATE_COMPLETE
    elif batch.closed_ms:
        message.state = pb.BATCH_STATE_CLOSED
    message.total = batch.total
    by_end = batch.ends.by_end
    message.done, message.dead = by_end[MemberEnd.DONE], by_end[MemberEnd.DEAD]
    message.cancelled = by_end[MemberEnd.CANCELLED]
    message.expired, message.deleted = by_end[MemberEnd.EXPIRED], by_end[MemberEnd.DELETED]
    fill_moment(message.created_at, batch.created_ms)
    fill_moment(message.closed_at, batch.closed_ms)
    fill_moment(message.completed_at, batch.completed_ms)
    fill_moment(message.cancelled_at, batch.cancelled_ms)
    message.cancelled_by, message.cancel_reason = batch.cancelled_by, batch.cancel_reason
    message.success_called = bool(batch.called & BatchCall.SUCCESS)
    message.complete_called = bool(batch.called & BatchCall.COMPLETE)
    message.first_death_called = bool(batch.called & BatchCall.FIRST_DEATH)
