"""Rows of jobs that ended, each with all that is known of its last attempt and of its life."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobline_server.engine.endings import JobsEnded, RunsEnded
from jobline_server.engine.snapshots import snapshot_of
from jobline_server.engine.values import EndReason, JobState
from jobline_server.history.rows import Rows
from jobline_server.history.snapshots import of_hand_out, sizes_of

EVENTS = {
    JobState.COMPLETED: "completed",
    JobState.DEAD: "dead",
    JobState.CANCELLED: "cancelled",
    JobState.EXPIRED: "expired",
}
_NONE, _ACTIVE, _COMPLETED = EndReason.NONE, JobState.ACTIVE, JobState.COMPLETED


def runs_ended(ending: RunsEnded) -> Iterator[Rows]:
    """Yields the ends of members of a lot. Nothing else ever happened to them, or they would have
    left it.
    """
    lot = ending.lot
    options, reason = lot.options, ending.reason
    was_leased = ending.before is _ACTIVE
    was_ready = was_leased or ending.before is JobState.READY
    leased_at = ending.leased_ms if was_leased else None
    size, sizes = sizes_of(lot.payloads, lot.first_id, ending.starts, ending.counts)
    yield Rows(
        ending.ended_ms,
        EVENTS[ending.state],
        lot.queue.name,
        ending.starts,
        ending.counts,
        sum(ending.counts),
        name=options.name or None,
        priority=options.priority,
        delivery=ending.delivery if was_leased else None,
        attempt=1 if was_leased else None,
        worker=ending.worker or None,
        worker_version=ending.version or None,
        pushed_at=lot.pushed_ms,
        ready_at=(lot.ready_ms or lot.pushed_ms) if was_ready else None,
        leased_at=leased_at,
        first_leased_at=leased_at,
        attempts=int(ending.state is _COMPLETED),
        stalls=0,
        releases=0,
        final=True,
        reason=None if reason is _NONE else reason.name,
        batch_id=options.rules.batch_id or None,
        payload_bytes=size,
        result_bytes=0 if ending.state is _COMPLETED else None,
        sizes=sizes,
    )


def jobs_ended(ending: JobsEnded) -> Iterator[Rows]:
    """Yields the ends of single jobs."""
    event, error, before = EVENTS[ending.state], ending.error, ending.before
    is_completed = ending.state is _COMPLETED
    reason = None if ending.reason is _NONE else ending.reason.name
    for job in ending.jobs:
        if job.volatile:
            continue
        more: dict[str, Any] = {"attempts": job.attempts + is_completed}
        if ending.state is JobState.DEAD and before is _ACTIVE and job.details.history:
            # An attempt that failed is counted already, and a lost lease is not an attempt.
            more["attempt"] = job.details.history[-1].attempt
        if is_completed:
            more["result_bytes"] = len(ending.results.get(job.id, b""))
        if error is not None:
            more["error_type"], more["error"] = error.type or None, error.message or None
        found = snapshot_of(job, before)
        yield of_hand_out(found, ending.ended_ms, event, final=True, reason=reason, **more)
