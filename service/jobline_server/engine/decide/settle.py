"""Settle: leased jobs are acked, failed or released, and leases extended.

A lease is `(id, delivery)`. Only the newest one is valid: with an older counter nothing changes,
and the outcome is LEASE_LOST. An id that is not live is NOT_FOUND here; whether it ended under
this very lease is for the finished file to say.
"""

from __future__ import annotations

from jobline_server.engine import effective, limits
from jobline_server.engine.commands import (
    Exceptions,
    ExtendItem,
    FailItem,
    FailResult,
    ReleaseItem,
)
from jobline_server.engine.entries import (
    JobDied,
    JobFailed,
    JobReported,
    JobsCancelled,
    JobsReleased,
)
from jobline_server.engine.job import Job
from jobline_server.engine.lot import RunLease
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import (
    EndReason,
    FailAction,
    JobError,
    JobState,
    Now,
    ReleaseReason,
    SettleOutcome,
)

RELEASES_USED_UP = JobError(type="ReleasesUsedUp", message="the job was given back too often")


def held(shard: Shard, job_id: int, delivery: int) -> Job | RunLease | SettleOutcome:
    """The job or the run that this lease is on, or why it is not valid."""
    lease, live = shard.find_lease(job_id)
    if lease is None:
        return SettleOutcome.LEASE_LOST if live else SettleOutcome.NOT_FOUND
    if lease.delivery != delivery:
        return SettleOutcome.LEASE_LOST
    if isinstance(lease, RunLease) and not lease.is_open(job_id - lease.lot.first_id):
        return SettleOutcome.NOT_FOUND
    return lease


def decide_fail(shard: Shard, now: Now, items: list[FailItem]) -> list[FailResult]:
    """Uses up an attempt of each job: another follows after a pause, or the job is dead."""
    return [_fail(shard, now, item) for item in items]


def _fail(shard: Shard, now: Now, item: FailItem) -> FailResult:
    lease = held(shard, item.id, item.delivery)
    if isinstance(lease, SettleOutcome):
        return FailResult(lease)
    volatile = lease.volatile if isinstance(lease, Job) else lease.lot.volatile
    cancelled = isinstance(lease, Job) and lease.cancel_requested
    if cancelled or item.then is FailAction.CANCEL:
        shard.emit(JobsCancelled(now.wall_ms, [item.id], [1]), volatile=volatile)
        outcome = SettleOutcome.CANCELLED if cancelled else SettleOutcome.DONE
        return FailResult(outcome, JobState.CANCELLED)
    attempt = lease.attempts + 1 if isinstance(lease, Job) else 1
    reason = _death_of(lease, item, attempt)
    if reason is not None:
        shard.emit(JobDied(now.wall_ms, item.id, reason, item.error), volatile=volatile)
        return FailResult(SettleOutcome.DONE, JobState.DEAD)
    owner = lease if isinstance(lease, Job) else lease.lot
    delay = item.retry_after_ms
    if delay is None:
        delay = effective.backoff_ms(owner.options, owner.queue.settings, item.id, attempt)
    run_at_ms = now.wall_ms + delay if delay else 0
    fact = JobFailed(
        at_ms=now.wall_ms,
        id=item.id,
        run_at_ms=run_at_ms,
        error=item.error,
        queue=owner.queue.name,
        name=owner.options.name,
        delivery=item.delivery,
        attempt=attempt,
        worker=lease.holder.worker if lease.holder else "",
    )
    shard.emit(fact, volatile=volatile)
    state = JobState.SCHEDULED if run_at_ms else JobState.READY
    return FailResult(SettleOutcome.DONE, state, run_at_ms)


def _death_of(lease: Job | RunLease, item: FailItem, attempt: int) -> EndReason | None:
    """Why this failure is the last one, if it is."""
    owner = lease if isinstance(lease, Job) else lease.lot
    settings = owner.queue.settings
    if item.then is FailAction.DEAD or item.error.type in settings.non_retryable_error_types:
        return EndReason.EXPLICIT_FAIL
    most = effective.max_attempts(owner.options, settings)
    if most and attempt >= most:
        return EndReason.MAX_ATTEMPTS_EXCEEDED
    return None


def decide_release(shard: Shard, now: Now, items: list[ReleaseItem]) -> Exceptions:
    """Gives jobs back without failing them; neighbours of the list that go the same way share a
    fact.
    """
    exceptions: Exceptions = []
    batch: dict[int, ReleaseItem] = {}
    for index, item in enumerate(items):
        if item.id in batch:
            exceptions.append((index, SettleOutcome.ALREADY_DONE))
            continue
        lease = held(shard, item.id, item.delivery)
        if isinstance(lease, SettleOutcome):
            exceptions.append((index, lease))
        elif isinstance(lease, Job) and lease.cancel_requested:
            shard.emit(JobsCancelled(now.wall_ms, [item.id], [1]), volatile=lease.volatile)
            exceptions.append((index, SettleOutcome.CANCELLED))
        elif isinstance(lease, Job) and lease.releases >= limits.RELEASES_MAX:
            died = JobDied(now.wall_ms, item.id, EndReason.MAX_ATTEMPTS_EXCEEDED, RELEASES_USED_UP)
            shard.emit(died, volatile=lease.volatile)
        else:
            batch[item.id] = item
    _emit_released(shard, now, list(batch.values()))
    return exceptions


def _emit_released(shard: Shard, now: Now, batch: list[ReleaseItem]) -> None:
    """One fact for all that share queue, reason, worker and durability; the front keeps their
    order.
    """
    groups: dict[tuple[str, ReleaseReason, str, bool], dict[int, int]] = {}
    for item in batch:
        lease = held(shard, item.id, item.delivery)
        if isinstance(lease, SettleOutcome):
            continue
        owner = lease if isinstance(lease, Job) else lease.lot
        worker = lease.holder.worker if lease.holder else ""
        group = groups.setdefault((owner.queue.name, item.why, worker, owner.volatile), {})
        group[item.id] = now.wall_ms + item.delay_ms if item.delay_ms else 0
    for (queue, why, worker, volatile), jobs in groups.items():
        run_at = list(jobs.values()) if any(jobs.values()) else []
        fact = JobsReleased(now.wall_ms, queue, list(jobs), run_at, why, worker)
        shard.emit(fact, volatile=volatile)


def decide_extend(shard: Shard, now: Now, items: list[ExtendItem]) -> Exceptions:
    """Keeps leases alive, and records progress and checkpoints.

    A lease's end is bookkeeping, so extending it is no fact; what the worker reports is one.
    """
    exceptions: Exceptions = []
    for index, item in enumerate(items):
        lease = held(shard, item.id, item.delivery)
        if isinstance(lease, SettleOutcome):
            exceptions.append((index, lease))
            continue
        length = item.lease_ms or lease.lease_ms
        lease.deadline_ms = max(lease.deadline_ms, now.mono_ms + length)
        owner = lease if isinstance(lease, Job) else lease.lot
        if item.progress is not None or item.message is not None or item.checkpoint is not None:
            fact = JobReported(
                at_ms=now.wall_ms,
                queue=owner.queue.name,
                id=item.id,
                progress=item.progress,
                message=item.message,
                checkpoint=item.checkpoint,
            )
            shard.emit(fact, volatile=owner.volatile)
        if isinstance(lease, Job) and lease.cancel_requested:
            exceptions.append((index, SettleOutcome.CANCELLED))
    return exceptions
