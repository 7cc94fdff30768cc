"""Converts pulls from messages."""

from __future__ import annotations

from jobline.v1 import job_service_pb2
from jobline_server.engine import limits
from jobline_server.engine.commands import Pull, Refused
from jobline_server.rpc import limits as rpc_limits
from jobline_server.rpc.convert.stream import message_bytes_max, queue_weights
from jobline_server.rpc.validate import fields
from jobline_server.rpc.validate.list_limits import check_all
from jobline_server.rpc.validate.options import lease_ms


def pull_command(request: job_service_pb2.PullRequest) -> Pull:
    """Returns the command of a pull."""
    wait = request.wait if request.HasField("wait") else None
    fields.single_lines(request.names, "names", limits.NAME_CHARACTERS_MAX)
    request_id = fields.key(request.request_id, "request_id", limits.REQUEST_ID_BYTES_MAX)
    return Pull(
        queues=queue_weights(request.queues),
        max_jobs=fields.integer(request.max_jobs or 1, "max_jobs", 1, limits.PULL_JOBS_MAX),
        wait_ms=fields.duration_ms(wait, "wait", 0, rpc_limits.PULL_WAIT_MS_MAX) if wait else 0,
        lease_ms=lease_ms(request.lease, "lease") if request.HasField("lease") else None,
        worker=fields.single_line(request.worker, "worker", limits.NAME_CHARACTERS_MAX),
        request_id=request_id.encode(),
        accepts_runs=request.accepts_runs,
        names=frozenset(request.names),
        message_bytes_max=message_bytes_max(request.max_message_bytes),
    )


def pull_to_give_back(request: job_service_pb2.PullRequest) -> Pull:
    """Returns the pull whose jobs a caller releases; it is identified by its request id."""
    try:
        check_all(request)
        if not request.request_id:
            raise fields.invalid("request_id", "must not be empty")
        return pull_command(request)
    except Refused as refused:
        raise fields.within("pull", refused) from None
