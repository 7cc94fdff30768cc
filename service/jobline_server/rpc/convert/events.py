"""Waiting and watching: what is asked, and events into messages."""

from __future__ import annotations

from jobline.v1 import event_pb2, job_pb2, job_service_pb2
from jobline_server.rpc import limits as rpc_limits
from jobline_server.rpc.convert.jobs import fill_moment
from jobline_server.rpc.validate import fields
from jobline_server.runtime.views import EventView, WatchFilter

KNOWN_KINDS = frozenset(event_pb2.EventKind.values()) - {event_pb2.EVENT_KIND_UNSPECIFIED}


def waited_ids(request: job_service_pb2.WaitRequest) -> list[int]:
    """The jobs to wait for, each once."""
    fields.some(request.ids, "ids")
    return list(dict.fromkeys(request.ids))


def wait_timeout_ms(request: job_service_pb2.WaitRequest) -> int:
    """How long to wait in all."""
    if not request.HasField("timeout"):
        return rpc_limits.WAIT_TIMEOUT_MS_DEFAULT
    return fields.duration_ms(request.timeout, "timeout", 0, rpc_limits.WAIT_TIMEOUT_MS_MAX)


def watch_filter(request: job_service_pb2.WatchRequest) -> WatchFilter:
    """Which events."""
    for index, queue in enumerate(request.queues):
        fields.queue_name(queue, f"queues[{index}]")
    for index, kind in enumerate(request.kinds):
        if kind not in KNOWN_KINDS:
            raise fields.invalid(f"kinds[{index}]", "is not a known value")
    return WatchFilter(
        queues=frozenset(request.queues),
        job_id=request.job_id,
        kinds=frozenset(int(kind) for kind in request.kinds),
    )


def resume_token(request: job_service_pb2.WatchRequest) -> str:
    """The token of the last event seen; the runtime knows what it means."""
    if not request.resume_token.isascii():
        raise fields.invalid("resume_token", "is not one of this server's")
    return fields.word(request.resume_token, "resume_token", rpc_limits.TOKEN_CHARACTERS_MAX)


def watch_response(events: list[EventView], token: str) -> job_service_pb2.WatchResponse:
    """Events, and where to resume after them."""
    response = job_service_pb2.WatchResponse(resume_token=token)
    for event in events:
        _fill_event(response.events.add(), event)
    return response


def _fill_event(message: event_pb2.Event, event: EventView) -> None:
    message.shard = event.shard
    message.offset = event.offset
    fill_moment(message.at, event.at_ms)
    message.kind = event_pb2.EventKind.ValueType(event.kind)
    message.queue = event.queue
    message.job_id = event.job_id
    message.name = event.name
    if event.state is not None:
        message.state = job_pb2.JobState.ValueType(event.state)
    message.delivery = event.delivery
    message.attempt = event.attempt
    message.worker = event.worker
    if event.error is not None:
        message.error_type = event.error.type
        message.error_message = event.error.message
    message.reason = job_pb2.EndReason.ValueType(event.reason)
    if event.run_at_ms:
        fill_moment(message.run_at, event.run_at_ms)
    message.progress = event.progress
    message.message = event.message
