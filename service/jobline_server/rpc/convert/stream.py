"""Converts the frames of worker streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobline.v1 import job_service_pb2
from jobline_server.dispatch.frames import (
    Handler,
    Open,
    ServerFrame,
    Settle,
    Window,
    Worker,
    WorkerFrame,
)
from jobline_server.engine import limits
from jobline_server.engine.commands import Refused
from jobline_server.rpc import limits as rpc_limits
from jobline_server.rpc.convert import settles
from jobline_server.rpc.convert.leases import STREAM_WRITER, messages_of
from jobline_server.rpc.convert.logs import check_line_count, stream_logs
from jobline_server.rpc.validate import fields
from jobline_server.rpc.validate.list_limits import check_all
from jobline_server.rpc.validate.mistyped import check_own_fields
from jobline_server.rpc.validate.options import lease_ms
from jobline_server.wire.times import fill_time


def worker_frame(request: job_service_pb2.StreamRequest) -> WorkerFrame:
    """Returns the value of a frame from a worker."""
    _check_counts(request)
    extends = settles.extends(request.extends, "extends") if request.extends else []
    if request.logs:
        extends += stream_logs(request.logs)
    return WorkerFrame(
        open=_open(request.open) if request.HasField("open") else None,
        settles=[_settle(settle, index) for index, settle in enumerate(request.settles)],
        extends=extends,
        window=_window(request.window) if request.HasField("window") else None,
        drain=request.drain,
    )


def _check_counts(request: job_service_pb2.StreamRequest) -> None:
    """Refuses a frame with too many items, before any of it is converted."""
    fields.at_most(request.settles, "settles", rpc_limits.FRAME_SETTLES_MAX)
    count = len(request.extends) + len(request.logs)
    for settle in request.settles:
        count += max(len(settle.ack_ids), len(settle.ack_deliveries))
        count += len(settle.acks) + len(settle.fails) + len(settle.releases)
    if count > limits.SETTLE_ITEMS_MAX:
        message = f"at most {limits.SETTLE_ITEMS_MAX} leases in one frame"
        raise fields.too_large("settles" if request.settles else "extends", message)
    if request.extends or request.logs:
        field = "logs" if request.logs else "extends"
        check_line_count(request.extends, request.logs, field)


def _settle(message: job_service_pb2.StreamSettle, index: int) -> Settle:
    try:
        check_own_fields(message)
        ids, deliveries = message.ack_ids[:], message.ack_deliveries[:]
        results = settles.acks(
            ids,
            deliveries,
            message.acks,
            deliveries_field="ack_deliveries",
            items_field="acks",
        )
        return Settle(
            seq=message.seq,
            ack_ids=ids,
            ack_deliveries=deliveries,
            results=results,
            fails=settles.fails(message.fails, "fails") if message.fails else [],
            releases=settles.releases(message.releases, "releases") if message.releases else [],
        )
    except Refused as refused:
        raise fields.within(f"settles[{index}]", refused) from None


def _window(message: job_service_pb2.StreamWindow) -> Window:
    try:
        check_own_fields(message)
        jobs = fields.integer(message.max_in_flight, "max_in_flight", 0, limits.WINDOW_MAX)
        payload_bytes = fields.integer(
            message.max_in_flight_bytes, "max_in_flight_bytes", 0, rpc_limits.WINDOW_BYTES_MAX
        )
        return Window(jobs, payload_bytes or limits.WINDOW_BYTES_DEFAULT)
    except Refused as refused:
        raise fields.within("window", refused) from None


def _open(message: job_service_pb2.StreamOpen) -> Open:
    try:
        check_all(message)
        return Open(
            worker=_worker(message.worker),
            queues=queue_weights(message.queues),
            handlers=tuple(_handlers(message.handlers)),
            lease_ms=lease_ms(message.lease, "lease") if message.HasField("lease") else None,
            session=fields.single_line(
                message.session, "session", rpc_limits.SESSION_CHARACTERS_MAX
            ),
            accepts_runs=message.accepts_runs,
            message_bytes_max=message_bytes_max(message.max_message_bytes),
        )
    except Refused as refused:
        raise fields.within("open", refused) from None


def message_bytes_max(value: int) -> int:
    """Returns the size of the largest message that a caller takes."""
    default = limits.MESSAGE_BYTES_DEFAULT
    return fields.integer(value or default, "max_message_bytes", default, limits.MESSAGE_BYTES_MAX)


def queue_weights(messages: Sequence[job_service_pb2.QueueWeight]) -> tuple[tuple[str, int], ...]:
    """Returns the queues to take from, as (name, weight)."""
    fields.non_empty(messages, "queues")
    found: dict[str, int] = {}
    for index, message in enumerate(messages):
        try:
            check_own_fields(message)
            queue = fields.queue_name(message.queue)
            if queue in found:
                raise fields.invalid("queue", "stands twice")
            weight = message.weight or 1
            found[queue] = fields.integer(weight, "weight", 1, rpc_limits.WEIGHT_MAX)
        except Refused as refused:
            raise fields.within(f"queues[{index}]", refused) from None
    return tuple(found.items())


def _worker(message: job_service_pb2.WorkerDescription) -> Worker:
    characters = limits.NAME_CHARACTERS_MAX
    try:
        fields.single_lines(
            [*message.labels.keys(), *message.labels.values()], "labels", characters
        )
        return Worker(
            id=fields.single_line(message.id, "id", characters),
            host=fields.single_line(message.host, "host", rpc_limits.HOST_CHARACTERS_MAX),
            pid=message.pid,
            version=fields.version(message.version, "version"),
            language=fields.single_line(message.language, "language", characters),
            labels=tuple(sorted(message.labels.items())),
        )
    except Refused as refused:
        raise fields.within("worker", refused) from None


def _handlers(messages: Sequence[job_service_pb2.HandlerDescription]) -> list[Handler]:
    found = []
    for index, message in enumerate(messages):
        try:
            found.append(_handler(message))
        except Refused as refused:
            raise fields.within(f"handlers[{index}]", refused) from None
    return found


def _handler(message: job_service_pb2.HandlerDescription) -> Handler:
    if message.any_name and message.name:
        raise fields.invalid("name", "must be unset together with any_name")
    return Handler(
        queue=fields.queue_name(message.queue),
        name=fields.single_line(message.name, "name", limits.NAME_CHARACTERS_MAX),
        payload_schema=_schema(message.payload_schema, "payload_schema"),
        result_schema=_schema(message.result_schema, "result_schema"),
        any_name=message.any_name,
    )


def _schema(value: str, field: str) -> str:
    if len(value.encode()) > rpc_limits.SCHEMA_BYTES_MAX:
        raise fields.invalid(field, f"must be at most {rpc_limits.SCHEMA_BYTES_MAX} bytes")
    return value


def server_messages(frame: ServerFrame) -> Iterator[bytes]:
    """Yields the serialised messages of a frame to a worker: one, or several if it has many jobs.
    Jobs are serialised when their message is asked for, everything else at once.
    """
    message = job_service_pb2.StreamResponse()
    if frame.opened is not None:
        _fill_opened(message.opened, frame)
    for seq, exceptions, dead in frame.confirms:
        confirm = message.confirms.add()
        confirm.seq = seq
        confirm.dead.extend(dead)
        if exceptions:
            settles.fill_exceptions(confirm, exceptions)
    for job_id, delivery, reason in frame.revokes:
        revoke = message.revokes.add()
        revoke.id = job_id
        revoke.delivery = delivery
        revoke.reason = job_service_pb2.RevokeReason.ValueType(reason)
    for (queue, name), ready in frame.unhandled.items():
        message.unhandled.add(queue=queue, name=name, ready=ready)
    if frame.goaway is not None:
        message.goaway.reason = frame.goaway.reason
        fill_time(message.goaway.close_time, frame.goaway.close_ms)
        fill_time(message.goaway.retry_delay, frame.goaway.retry_delay_ms)
    first = message.SerializeToString()
    return messages_of(
        first, (field for leased in frame.leased for field in STREAM_WRITER.fields(leased))
    )


def _fill_opened(message: job_service_pb2.StreamOpened, frame: ServerFrame) -> None:
    opened = frame.opened
    if opened is None:
        return
    message.session = opened.session
    fill_time(message.heartbeat_interval, opened.heartbeat_ms)
    message.resumed = opened.resumed
    message.held_ids.extend(opened.held_ids)
    message.held_deliveries.extend(opened.held_deliveries)
