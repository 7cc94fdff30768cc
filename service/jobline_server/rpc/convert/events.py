"""Converts the requests of Wait and Watch."""

from __future__ import annotations

from jobline.v1 import event_pb2, job_service_pb2
from jobline_server.engine import limits
from jobline_server.rpc import limits as rpc_limits
from jobline_server.rpc.validate import fields
from jobline_server.runtime.watch.watch_filter import WatchFilter

KNOWN_KINDS = frozenset(event_pb2.EventKind.values()) - {event_pb2.EVENT_KIND_UNSPECIFIED}


def waited_ids(request: job_service_pb2.WaitRequest) -> list[int]:
    """Returns the ids of the jobs to wait for, without repetitions."""
    fields.non_empty(request.ids, "ids")
    return list(dict.fromkeys(request.ids))


def wants_partials(request: job_service_pb2.WaitRequest) -> bool:
    """Returns whether the pieces of results are wanted, too."""
    if request.partials:
        fields.at_most(request.ids, "ids", limits.PARTIAL_WAIT_IDS_MAX)
    return request.partials


def wait_timeout_ms(request: job_service_pb2.WaitRequest) -> int:
    """Returns how long to wait for all jobs together."""
    if not request.HasField("timeout"):
        return rpc_limits.WAIT_TIMEOUT_MS_DEFAULT
    return fields.duration_ms(request.timeout, "timeout", 0, rpc_limits.WAIT_TIMEOUT_MS_MAX)


def watch_filter(request: job_service_pb2.WatchRequest) -> WatchFilter:
    """Returns the filter of a watch."""
    for index, queue in enumerate(request.queues):
        fields.queue_name(queue, f"queues[{index}]")
    for index, kind in enumerate(request.kinds):
        if kind not in KNOWN_KINDS:
            raise fields.invalid(f"kinds[{index}]", "is not a known value")
        if kind == event_pb2.EVENT_KIND_PARTIAL and not request.job_id:
            raise fields.invalid(f"kinds[{index}]", "PARTIAL needs a job_id")
    return WatchFilter(
        queues=frozenset(request.queues),
        job_id=request.job_id,
        kinds=frozenset(int(kind) for kind in request.kinds),
    )


def watches_partials(request: job_service_pb2.WatchRequest) -> bool:
    """Returns whether the pieces of the job's result are wanted, too."""
    return event_pb2.EVENT_KIND_PARTIAL in request.kinds


def resume_token(request: job_service_pb2.WatchRequest) -> str:
    """Returns the token of the last event seen, which the runtime interprets."""
    if not request.resume_token.isascii():
        raise fields.invalid("resume_token", "is not one of this server's")
    return fields.single_line(request.resume_token, "resume_token", rpc_limits.TOKEN_CHARACTERS_MAX)
