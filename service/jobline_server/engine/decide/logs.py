"""Logs: records the lines that a worker writes to the log of its job.

Lines of live jobs are in memory. While the server holds as many bytes as it may, a log does not
grow: its oldest lines make room for the new ones, and work goes on.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobline_server.engine import limits
from jobline_server.engine.job import Job
from jobline_server.engine.job_log import LogLine, NewLine
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.report_entries import JobLogged
from jobline_server.engine.values import Now
from jobline_server.engine.view import ShardView


def log_lines(
    shard: ShardView, now: Now, job_id: int, lease: Job | RunLease, lines: Sequence[NewLine]
) -> None:
    """Writes lines to the log of a job that is leased."""
    if isinstance(lease, Job):
        owner: Job | Lot = lease
        attempt, log = lease.attempts + 1, lease.details.log
    else:
        owner, attempt, log = lease.lot, 1, None
    bytes_max = limits.LOG_BYTES_MAX
    if shard.load.held_bytes() >= shard.load.waiting_bytes_max:
        bytes_max = 0 if log is None else log.bytes
    written = [
        LogLine(line.written_ms or now.wall_ms, line.level, line.text, attempt) for line in lines
    ]
    fact = JobLogged(now.wall_ms, owner.queue.name, job_id, written, bytes_max)
    shard.emit(fact, volatile=owner.volatile)
