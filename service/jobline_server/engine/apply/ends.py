"""Jobs end, are kept for a while, and are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobline_server.engine import effective
from jobline_server.engine.apply.leases import note_attempt
from jobline_server.engine.apply.touch import (
    drop_job,
    drop_members,
    settle_members,
    single,
    unlease,
)
from jobline_server.engine.endings import EndedChange, EndedJob, EndedRun
from jobline_server.engine.entries import (
    JobDied,
    JobsCancelled,
    JobsCompleted,
    JobsDeleted,
    JobsStaled,
)
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.states import IllegalMove, Move, after, live
from jobline_server.engine.values import (
    WAITING_STATES,
    AttemptOutcome,
    EndReason,
    JobError,
    JobState,
)

if TYPE_CHECKING:
    from jobline_server.engine.queue import Queue
    from jobline_server.engine.shard import Shard


def apply_jobs_completed(shard: Shard, fact: JobsCompleted, _offset: int) -> None:
    """Active jobs ended well."""
    results = dict(zip(fact.result_ids, fact.results, strict=True))
    for first_id, count in zip(fact.starts, fact.counts, strict=True):
        job = shard.jobs.get(first_id)
        if job is not None:
            result = results.get(first_id, b"")
            end_job(shard, job, Move.COMPLETED, fact.at_ms, result=result)
            continue
        lot, lease = _leased_members(shard, first_id)
        result = results.get(first_id, b"") if results else b""
        _end_leased(shard, lot, lease, first_id - lot.first_id, count, fact.at_ms, result)
        lot.queue.completed_total += count


def _leased_members(shard: Shard, first_id: int) -> tuple[Lot, RunLease]:
    lot = shard.lots.find(first_id)
    lease = lot.lease_at(first_id - lot.first_id) if lot else None
    if lot is None or lease is None:
        raise IllegalMove(f"job {first_id} is not leased")
    return lot, lease


def _end_leased(
    shard: Shard, lot: Lot, lease: RunLease, index: int, count: int, at_ms: int, result: bytes
) -> None:
    """Members of a run completed."""
    queue = lot.queue
    kept = _is_kept(queue, lot, JobState.COMPLETED)
    first_id = lot.first_id + index
    ended: EndedRun | EndedJob = EndedRun(
        queue=queue.name,
        state=JobState.COMPLETED,
        first_id=first_id,
        options=lot.options,
        payloads=lot.payloads[index : index + count],
        pushed_ms=lot.pushed_ms,
        ended_ms=at_ms,
        delivery=lease.delivery,
        worker=lease.holder.worker,
        kept=kept,
    )
    if result:
        ended = _with_result(lot, lease, index, at_ms, result, kept=kept)
    shard.ended.append(ended)
    settle_members(lease, index, count)
    queue.active -= count
    _count_ended(queue, JobState.COMPLETED, count, kept=kept)
    drop_members(shard, lot, count)


def _with_result(
    lot: Lot, lease: RunLease, index: int, at_ms: int, result: bytes, *, kept: bool
) -> EndedJob:
    job = Job(lot.first_id + index, lot.queue, lot.options, lot.payloads[index], lot.pushed_ms)
    job.delivery = lease.delivery
    worker = lease.holder.worker
    return EndedJob(JobState.COMPLETED, job, worker, at_ms, kept, result=result)


def _is_kept(queue: Queue, item: Lot | Job, state: JobState) -> bool:
    return not item.volatile and effective.is_kept(item.options, queue.settings, state)


def _count_ended(queue: Queue, state: JobState, count: int, *, kept: bool) -> None:
    if kept:
        queue.ended[state] = queue.ended.get(state, 0) + count


def end_job(
    shard: Shard,
    job: Job,
    move: Move,
    at_ms: int,
    *,
    result: bytes = b"",
    reason: EndReason = EndReason.NONE,
    error: JobError | None = None,
) -> None:
    """A job that is an object of its own ended."""
    queue, before = job.queue, job.state
    state = live(before, move, job.id)
    worker = job.holder.worker if job.holder else ""
    _leave_state(job, before)
    job.state = state
    kept = _is_kept(queue, job, state)
    _count_ended(queue, state, 1, kept=kept)
    queue.completed_total += state is JobState.COMPLETED
    shard.ended.append(EndedJob(state, job, worker, at_ms, kept, result, reason, error))
    drop_job(shard, job)


def _leave_state(job: Job, before: JobState) -> None:
    """Counts a job out of the state it was in."""
    queue = job.queue
    if before is JobState.ACTIVE:
        unlease(job)
        queue.active -= 1
    elif before is JobState.READY:
        queue.leave(job, 1)
    else:
        queue.scheduled -= 1


def apply_job_died(shard: Shard, fact: JobDied, _offset: int) -> None:
    """An active job is dead: of an error, which used an attempt, or of a lost lease."""
    job = single(shard, fact.id)
    stalled = fact.reason in (EndReason.STALLED, EndReason.WORKER_LOST)
    outcome = AttemptOutcome.STALLED if stalled else AttemptOutcome.FAILED
    note_attempt(job, fact.at_ms, outcome, fact.error)
    if stalled:
        job.stalls += 1
    else:
        job.attempts += 1
        job.queue.failed_total += 1
    end_job(shard, job, Move.DIED, fact.at_ms, reason=fact.reason, error=fact.error)


def apply_jobs_cancelled(shard: Shard, fact: JobsCancelled, _offset: int) -> None:
    """Waiting jobs were cancelled, or active ones whose worker has settled them since."""
    results = dict(zip(fact.result_ids, fact.results, strict=True))
    for first_id, count in zip(fact.starts, fact.counts, strict=True):
        job = shard.jobs.get(first_id)
        if job is not None:
            result = results.get(first_id, b"")
            reason = EndReason.CANCELLED
            end_job(shard, job, Move.CANCELLED, fact.at_ms, result=result, reason=reason)
        else:
            _cancel_members(shard, first_id, count, fact.at_ms)


def _cancel_members(shard: Shard, first_id: int, count: int, at_ms: int) -> None:
    """Waiting members of a lot were cancelled."""
    lot, index = _leave_lot(shard, first_id, count, Move.CANCELLED)
    queue = lot.queue
    kept = _is_kept(queue, lot, JobState.CANCELLED)
    _count_ended(queue, JobState.CANCELLED, count, kept=kept)
    ended = EndedRun(
        queue=queue.name,
        state=JobState.CANCELLED,
        first_id=first_id,
        options=lot.options,
        payloads=lot.payloads[index : index + count],
        pushed_ms=lot.pushed_ms,
        ended_ms=at_ms,
        delivery=0,
        worker="",
        kept=kept,
    )
    shard.ended.append(ended)
    drop_members(shard, lot, count)


def _leave_lot(shard: Shard, first_id: int, count: int, move: Move) -> tuple[Lot, int]:
    """Waiting members of a lot do not wait any more."""
    lot = shard.lots.find(first_id)
    if lot is None:
        raise IllegalMove(f"job {first_id} is not live")
    index = first_id - lot.first_id
    if not all(lot.is_waiting(i) for i in range(index, index + count)):
        raise IllegalMove(f"jobs from {first_id} on do not wait")
    after(JobState.SCHEDULED if lot.run_at_ms else JobState.READY, move, first_id)
    lot.gone.update(range(index, index + count))
    if lot.run_at_ms:
        lot.queue.scheduled -= count
    else:
        lot.queue.leave(lot, count)
    return lot, index


def apply_jobs_staled(shard: Shard, fact: JobsStaled, _offset: int) -> None:
    """Ended jobs are deleted next."""
    live(fact.state, Move.STALED, fact.starts[0])
    ended, count = shard.queues[fact.queue].ended, sum(fact.counts)
    ended[fact.state] = ended.get(fact.state, 0) - count
    ended[JobState.STALE] = ended.get(JobState.STALE, 0) + count
    shard.ended.append(EndedChange(JobState.STALE, fact.starts, fact.counts, fact.at_ms))


def apply_jobs_deleted(shard: Shard, fact: JobsDeleted, _offset: int) -> None:
    """Jobs are gone, waiting or ended ones."""
    after(fact.state, Move.DELETED, fact.starts[0])
    if fact.state not in WAITING_STATES:
        ended = shard.queues[fact.queue].ended
        ended[fact.state] = ended.get(fact.state, 0) - sum(fact.counts)
        shard.ended.append(EndedChange(None, fact.starts, fact.counts, fact.at_ms))
        return
    for first_id, count in zip(fact.starts, fact.counts, strict=True):
        job = shard.jobs.get(first_id)
        if job is not None:
            _leave_state(job, job.state)
            job.state = JobState.STALE
            drop_job(shard, job)
        else:
            lot, _index = _leave_lot(shard, first_id, count, Move.DELETED)
            drop_members(shard, lot, count)
