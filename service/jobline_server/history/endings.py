"""Rows of jobs that ended, each with all that is known of its last attempt and of its life."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from jobline_server.engine.endings import JobsEnded, RunsEnded
from jobline_server.engine.snapshots import jobs_noted
from jobline_server.engine.values import EndReason, JobState
from jobline_server.history.rows import Rows, Sizes
from jobline_server.history.snapshots import columns_of, of_hand_outs, plus, sizes_of

EVENTS = {
    JobState.COMPLETED: "completed",
    JobState.DEAD: "dead",
    JobState.CANCELLED: "cancelled",
    JobState.EXPIRED: "expired",
}
_NONE, _ACTIVE, _COMPLETED = EndReason.NONE, JobState.ACTIVE, JobState.COMPLETED


class _Alike(NamedTuple):
    """What members of a lot have in common that ended in the same way; `payload_bytes` -1: their
    sizes differ.
    """

    priority: int
    name: str
    batch_id: int
    queue: str
    state: JobState
    before: JobState
    reason: EndReason
    pushed_ms: int
    ready_ms: int
    delivery: int
    worker: str
    version: str
    leased_ms: int
    payload_bytes: int


def runs_ended(ending: RunsEnded) -> Rows:
    """Returns the ends of members of a lot. Nothing else ever happened to them, or they would have
    left it.
    """
    lot, starts, counts = ending.lot, ending.starts, ending.counts
    options, sizes = lot.options, sizes_of(lot.payloads, lot.first_id, starts, counts)
    are_alike = not isinstance(sizes, Sizes)
    alike = _Alike(
        options.priority,
        options.name,
        options.rules.batch_id,
        lot.queue.name,
        ending.state,
        ending.before,
        ending.reason,
        lot.pushed_ms,
        lot.ready_ms,
        ending.delivery,
        ending.worker,
        ending.version,
        ending.leased_ms,
        -1 if isinstance(sizes, Sizes) else sizes,
    )
    columns = _columns_of(alike)
    if not are_alike:
        columns = {**columns, "payload_bytes": sizes}
    return Rows(ending.ended_ms, columns, starts, counts, are_shared=are_alike)


# Jobs that were leased together and are acked in any order end a few at a time.
@lru_cache(maxsize=512)
def _columns_of(alike: _Alike) -> dict[str, Any]:
    """Returns columns that nothing changes any more."""
    columns = columns_of(alike.priority, alike.name, alike.batch_id)
    columns["event"], columns["queue"] = EVENTS[alike.state], alike.queue
    columns["pushed_at"], columns["final"] = alike.pushed_ms, True
    columns["attempts"] = int(alike.state is _COMPLETED)
    columns["stalls"] = columns["releases"] = 0
    columns["payload_bytes"] = alike.payload_bytes
    if alike.before is _ACTIVE:
        columns["delivery"], columns["attempt"] = alike.delivery, 1
        columns["worker"], columns["worker_version"] = alike.worker or None, alike.version or None
        columns["leased_at"] = columns["first_leased_at"] = alike.leased_ms
    if alike.before is _ACTIVE or alike.before is JobState.READY:
        columns["ready_at"] = alike.ready_ms or alike.pushed_ms
    if alike.state is _COMPLETED:
        columns["result_bytes"] = 0
    if alike.reason is not _NONE:
        columns["reason"] = alike.reason.name
    return columns


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
