"""Keeps the history of a job: its attempts that did not complete it."""

from __future__ import annotations

from jobline_server.engine import limits
from jobline_server.engine.job import Job
from jobline_server.engine.reported import error_bytes
from jobline_server.engine.state import ShardState
from jobline_server.engine.values import Attempt, AttemptOutcome, JobError


def note_attempt(
    shard: ShardState, job: Job, at_ms: int, outcome: AttemptOutcome, error: JobError | None
) -> None:
    """Adds the delivery that ends now to the job's history."""
    details = job.writable_details()
    worker, version = (job.holder.worker, job.holder.version) if job.holder else ("", "")
    attempt = Attempt(
        job.attempts + 1,
        job.delivery,
        worker,
        job.leased_ms,
        at_ms,
        outcome,
        error,
        version,
    )
    history = details.history
    if len(history) >= limits.HISTORY_MAX:
        shard.count_reports(-error_bytes(history[0].error))
        history = history[1:]
    shard.count_reports(error_bytes(error))
    details.history = (*history, attempt)
