"""Applies what workers report on jobs: progress, checkpoints, lines of their logs."""

from __future__ import annotations

from jobline_server.engine.apply.bookkeeping import mark_job, single
from jobline_server.engine.apply.noted import note_jobs
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.job_log import JobLog
from jobline_server.engine.report_entries import JobLogged, JobReported
from jobline_server.engine.state import ShardState


def apply_job_reported(shard: ShardState, fact: JobReported, _offset: int) -> None:
    """Stores progress and the worker's checkpoint; a new checkpoint resets the stalls."""
    job = single(shard, fact.id)
    note_jobs(shard, [job])
    details = job.writable_details()
    if fact.progress is not None:
        details.progress = fact.progress
    if fact.message is not None:
        details.progress_message = fact.message
    if fact.worker_checkpoint is not None:
        shard.count_reports(len(fact.worker_checkpoint) - len(details.worker_checkpoint))
        details.worker_checkpoint = fact.worker_checkpoint
        job.stalls = 0
    mark_job(shard, job)


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


APPLY: ApplyTable = {JobReported: apply_job_reported, JobLogged: apply_job_logged}
