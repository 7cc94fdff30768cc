"""Rows of jobs that ended, each with all that is known of its last attempt and of its life."""

from __future__ import annotations

from typing import Any

from jobline_server.engine.endings import JobsEnded, RunsEnded
from jobline_server.engine.snapshots import jobs_noted
from jobline_server.engine.values import EndReason, JobState
from jobline_server.history.rows import Rows
from jobline_server.history.snapshots import of_hand_outs, of_options, plus, sizes_of

EVENTS = {
    JobState.COMPLETED: "completed",
    JobState.DEAD: "dead",
    JobState.CANCELLED: "cancelled",
    JobState.EXPIRED: "expired",
}
_NONE, _ACTIVE, _COMPLETED = EndReason.NONE, JobState.ACTIVE, JobState.COMPLETED


def runs_ended(ending: RunsEnded) -> Rows:
    """Returns the ends of members of a lot. Nothing else ever happened to them, or they would have
    left it.
    """
    lot = ending.lot
    reason = ending.reason
    columns = of_options(lot.options)
    columns["event"], columns["queue"] = EVENTS[ending.state], lot.queue.name
    columns["pushed_at"], columns["final"] = lot.pushed_ms, True
    columns["attempts"] = int(ending.state is _COMPLETED)
    columns["stalls"] = columns["releases"] = 0
    columns["payload_bytes"] = sizes_of(lot.payloads, lot.first_id, ending.starts, ending.counts)
    if ending.before is _ACTIVE:
        columns["delivery"], columns["attempt"] = ending.delivery, 1
        columns["worker"], columns["worker_version"] = ending.worker or None, ending.version or None
        columns["leased_at"] = columns["first_leased_at"] = ending.leased_ms
    if ending.before is _ACTIVE or ending.before is JobState.READY:
        columns["ready_at"] = lot.ready_ms or lot.pushed_ms
    if ending.state is _COMPLETED:
        columns["result_bytes"] = 0
    if reason is not _NONE:
        columns["reason"] = reason.name
    return Rows(ending.ended_ms, columns, ending.starts, ending.counts)


def jobs_ended(ending: JobsEnded) -> Rows | None:
    """Returns the ends of single jobs; None if all are volatile."""
    jobs = [job for job in ending.jobs if not job.volatile]
    if not jobs:
        return None
    error, before = ending.error, ending.before
    noted = jobs_noted(jobs, before)
    more: dict[str, Any] = {"final": True}
    if ending.reason is not _NONE:
        more["reason"] = ending.reason.name
    if ending.state is _COMPLETED:
        results = ending.results
        more["attempts"] = plus(noted.attempts, 1)
        sizes = [len(results.get(job_id, b"")) for job_id in noted.ids] if results else 0
        more["result_bytes"] = sizes
    elif ending.state is JobState.DEAD and before is _ACTIVE:
        # An attempt that failed is counted already, and a lost lease is not an attempt.
        histories = [job.details.history for job in jobs]
        more["attempt"] = [
            history[-1].attempt if history else job.attempts + 1
            for history, job in zip(histories, jobs, strict=True)
        ]
    if error is not None:
        more["error_type"], more["error"] = error.type or None, error.message or None
    return of_hand_outs(noted, ending.ended_ms, EVENTS[ending.state], **more)
