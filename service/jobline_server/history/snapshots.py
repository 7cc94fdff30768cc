"""Rows of jobs and runs that a fact noted: what all their events have, and what hand-outs add."""

from __future__ import annotations

from typing import Any

from jobline_server.engine.snapshots import JobSnapshot, RunsNoted
from jobline_server.engine.values import JobState
from jobline_server.history.rows import Rows

# Enum attribute access is slow before Python 3.12.
_ACTIVE, _READY = JobState.ACTIVE, JobState.READY
_ONE = (1,)


def of_job(job: JobSnapshot, at_ms: int, event: str) -> Rows:
    """Returns a row with what all events of a job have."""
    options = job.options
    return Rows(
        at_ms,
        event,
        job.queue,
        (job.id,),
        _ONE,
        name=options.name or None,
        group=job.ties.group or None,
        priority=options.priority,
        batch_id=options.rules.batch_id or None,
        payload_bytes=job.payload_bytes,
    )


def of_runs(noted: RunsNoted, at_ms: int, event: str) -> Rows:
    """Returns rows with what all events of jobs have, of members of a lot."""
    lot = noted.lot
    options = lot.options
    size, sizes = sizes_of(lot.payloads, lot.first_id, noted.starts, noted.counts)
    return Rows(
        at_ms,
        event,
        lot.queue.name,
        noted.starts,
        noted.counts,
        sum(noted.counts),
        name=options.name or None,
        priority=options.priority,
        batch_id=options.rules.batch_id or None,
        payload_bytes=size,
        sizes=sizes,
    )


def of_hand_out(job: JobSnapshot, at_ms: int, event: str, **more: Any) -> Rows:
    """Returns a row of a job with its life so far and, if it is leased, its hand-out; `more` are
    the columns of the event, and count before these.
    """
    options = job.options
    columns: dict[str, Any] = {
        "name": options.name or None,
        "group": job.ties.group or None,
        "priority": options.priority,
        "pushed_at": job.pushed_ms,
        "first_leased_at": job.first_leased_ms or None,
        "attempts": job.attempts,
        "stalls": job.stalls,
        "releases": job.releases,
        "batch_id": options.rules.batch_id or None,
        "payload_bytes": job.payload_bytes,
    }
    if job.state is _ACTIVE:
        holder = job.holder
        columns["delivery"] = job.delivery
        columns["attempt"] = job.attempts + 1
        columns["leased_at"] = job.leased_ms
        columns["ready_at"] = job.ready_ms or job.pushed_ms
        if holder is not None:
            columns["worker"] = holder.worker or None
            columns["worker_version"] = holder.version or None
    elif job.state is _READY:
        columns["ready_at"] = job.ready_ms or job.pushed_ms
    columns |= more
    return Rows(at_ms, event, job.queue, (job.id,), _ONE, **columns)


def run_hand_out_of(noted: RunsNoted) -> dict[str, Any]:
    """Returns the columns of the hand-out of a run, as `of_hand_out` for a job."""
    lease, pushed_ms = noted.lease, noted.lot.pushed_ms
    columns: dict[str, Any] = {"pushed_at": pushed_ms, "attempts": 0, "stalls": 0, "releases": 0}
    if lease is not None or noted.state is _READY:
        columns["ready_at"] = noted.ready_ms or pushed_ms
    if lease is not None:
        columns["delivery"], columns["attempt"] = lease.delivery, 1
        columns["worker"] = lease.holder.worker or None
        columns["worker_version"] = lease.holder.version or None
        columns["leased_at"] = columns["first_leased_at"] = lease.leased_ms
    return columns


def sizes_of(
    payloads: Any, first_id: int, starts: Any, counts: Any
) -> tuple[int | None, list[int] | None]:
    """Returns the payload bytes of members of a lot: one size for all, or one for each."""
    if payloads.is_even:
        return payloads.bytes_max, None
    size_of = payloads.size_of
    sizes = [
        size_of(index)
        for start, count in zip(starts, counts, strict=True)
        for index in range(start - first_id, start - first_id + count)
    ]
    return None, sizes
