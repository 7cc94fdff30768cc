"""Spreads the jobs of a push evenly over some time: each gets a start of its own."""

from __future__ import annotations

from jobline.v1 import job_service_pb2
from jobline_server.engine import limits
from jobline_server.engine.commands import Push
from jobline_server.rpc.convert.ties import make_rows
from jobline_server.rpc.validate import fields


def checked_spread(request: job_service_pb2.PushRequest) -> int:
    """Returns the time to spread a push over, in milliseconds; refuses one whose jobs have starts
    of their own.
    """
    spread_ms = fields.duration_ms(request.spread, "spread", 0, limits.DELAY_MS_MAX)
    fields.at_most(request.jobs, "jobs", limits.PUSH_JOBS_MAX)
    for index, row in enumerate(request.jobs):
        start = row.WhichOneof("start")
        if start is not None:
            raise fields.invalid(f"jobs[{index}].{start}", "not together with spread")
    return spread_ms


def spread_out(command: Push, spread_ms: int, wall_ms: int) -> None:
    """Makes rows of all jobs of a push, each a share of the time after the one before it."""
    count = len(command.rows) + len(command.payloads)
    if count > limits.PUSH_JOBS_MAX:
        raise fields.too_large("payloads", f"at most {limits.PUSH_JOBS_MAX} jobs with spread")
    start_ms = command.run_at_ms or wall_ms
    if start_ms + spread_ms > wall_ms + limits.DELAY_MS_MAX:
        raise fields.invalid("spread", "must end at most 400 days ahead")
    make_rows(command, [])
    command.rows.run_at_ms = [start_ms + spread_ms * index // count for index in range(count)]
