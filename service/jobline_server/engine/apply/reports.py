"""Applies what workers report on jobs beside their progress: lines of their logs."""

from __future__ import annotations

from jobline_server.engine.apply.bookkeeping import mark_job, single
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.job_log import JobLog
from jobline_server.engine.report_entries import JobLogged
from jobline_server.engine.state import ShardState


def apply_job_logged(shard: ShardState, fact: JobLogged, _offset: int) -> None:
    """Appends lines to the log of an active job; the oldest lines make room."""
    job = single(shard, fact.id)
    details = job.writable_details()
    log = details.log
    if log is None:
        log = details.log = JobLog()
    before = log.bytes
    log.add(fact.lines, fact.bytes_max)
    shard.count_reports(log.bytes - before)
    mark_job(shard, job)


APPLY: ApplyTable = {JobLogged: apply_job_logged}
