"""Settle: fails and releases leased jobs, and extends leases; `ack` completes them.

A lease is `(id, delivery)`. Only the newest one is valid: an older delivery changes nothing and its
outcome is LEASE_LOST. An id that is not live is NOT_FOUND here; the ended store knows whether it
ended under this lease.
"""

from __future__ import annotations

from itertools import groupby
from typing import cast

from jobline_server.engine import effective, limits
from jobline_server.engine.commands import (
    ExtendItem,
    FailItem,
    FailResult,
    NotDone,
    ReleaseItem,
)
from jobline_server.engine.decide.expiry import LostLease, lose_leases
from jobline_server.engine.decide.group_limits import limit_group_as_told
from jobline_server.engine.decide.logs import log_lines
from jobline_server.engine.decide.phases import finish_phase, progress_of
from jobline_server.engine.decide.queues import limit_as_told
from jobline_server.engine.entries import (
    JobDied,
    JobFailed,
    JobsCancelled,
    JobsReleased,
)
from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.report_entries import JobReported
from jobline_server.engine.rules import NO_RULES, is_past_retries
from jobline_server.engine.values import (
    EndReason,
    FailAction,
    JobError,
    JobOptions,
    JobState,
    Now,
    QueueSettings,
    ReleaseReason,
    SettleOutcome,
)
from jobline_server.engine.view import ShardView

# Enum attribute access is slow before Python 3.12.
_THEN_DEAD, _THEN_CANCEL = FailAction.DEAD, FailAction.CANCEL
_DONE, _CANCELLED = SettleOutcome.DONE, SettleOutcome.CANCELLED
_LEASE_LOST, _NOT_FOUND = SettleOutcome.LEASE_LOST, SettleOutcome.NOT_FOUND
_READY, _SCHEDULED = JobState.READY, JobState.SCHEDULED
_CRASHED = ReleaseReason.CRASHED

_Kind = tuple[str, ReleaseReason, str, bool]
"""The properties that jobs must share to share a fact: queue, reason, worker, volatile."""

RELEASES_USED_UP = JobError(type="ReleasesUsedUp", message="the job was given back too often")


def held(shard: ShardView, job_id: int, delivery: int) -> Job | RunLease | SettleOutcome:
    """Returns the job or run that this lease is on, or the outcome if the lease is not valid."""
    lease, live = shard.find_lease(job_id)
    if lease is None:
        return _LEASE_LOST if live else _NOT_FOUND
    return lease if lease.delivery == delivery else _LEASE_LOST


def decide_fail(shard: ShardView, now: Now, items: list[FailItem]) -> list[FailResult]:
    """Fails jobs: each is retried after its backoff, or becomes DEAD or CANCELLED."""
    shard.clocks.advance(now)
    return [_fail(shard, now, item) for item in items]


def _fail(shard: ShardView, now: Now, item: FailItem) -> FailResult:
    lease = held(shard, item.id, item.delivery)
    return (
        FailResult(lease)
        if isinstance(lease, SettleOutcome)
        else fail_held(shard, now, item, lease)
    )


def fail_held(
    shard: ShardView, now: Now, item: FailItem, lease: Job | RunLease, *, timed_out: bool = False
) -> FailResult:
    """Fails the attempt of a job that is held under this lease; `timed_out`: it took too long."""
    if isinstance(lease, Job):
        owner: Job | Lot = lease
        attempt, cancelled = lease.attempts + 1, lease.cancel_requested
    else:
        owner = lease.lot
        attempt, cancelled = 1, False
    volatile, queue, options = owner.volatile, owner.queue, owner.options
    if cancelled or item.then is _THEN_CANCEL:
        fact = JobsCancelled(now.wall_ms, [item.id], [1], error=item.error)
        shard.emit(fact, volatile=volatile)
        return FailResult(_CANCELLED if cancelled else _DONE, JobState.CANCELLED)
    reason = _death_of(item, options, queue.settings, attempt, timed_out=timed_out)
    if reason is not None:
        died = JobDied(now.wall_ms, item.id, reason, item.error, timed_out)
        shard.emit(died, volatile=volatile)
        return FailResult(_DONE, JobState.DEAD)
    delay = item.retry_after_ms
    if delay is None:
        delay = effective.backoff_ms(options, queue.settings, item.id, attempt)
    if options.rules is not NO_RULES and is_past_retries(options.rules, now.wall_ms + delay):
        reason = EndReason.RETRY_UNTIL_PASSED
        died = JobDied(now.wall_ms, item.id, reason, item.error, timed_out)
        shard.emit(died, volatile=volatile)
        return FailResult(_DONE, JobState.DEAD)
    run_at_ms = now.wall_ms + delay if delay else 0
    # By position, which takes half the time of keywords.
    at_ms, name, worker = now.wall_ms, options.name, lease.holder.worker if lease.holder else ""
    failed = JobFailed(
        at_ms, item.id, run_at_ms, item.error, queue.name, name, item.delivery, attempt, worker,
        timed_out,
    )  # fmt: skip
    shard.emit(failed, volatile=volatile)
    return FailResult(_DONE, _SCHEDULED if run_at_ms else _READY, run_at_ms)


def _death_of(
    item: FailItem,
    options: JobOptions,
    settings: QueueSettings,
    attempt: int,
    *,
    timed_out: bool,
) -> EndReason | None:
    """Returns the reason why this failure is the job's last one; None if it is retried."""
    if timed_out and effective.is_once(options, settings):
        return EndReason.INTERRUPTED
    if item.then is _THEN_DEAD or item.error.type in settings.non_retryable_error_types:
        return EndReason.TIMEOUT if timed_out else EndReason.EXPLICIT_FAIL
    max_attempts = effective.max_attempts(options, settings)
    if max_attempts and attempt >= max_attempts:
        return EndReason.TIMEOUT if timed_out else EndReason.MAX_ATTEMPTS_EXCEEDED
    return None


def decide_release(shard: ShardView, now: Now, items: list[ReleaseItem]) -> NotDone:
    """Releases jobs without using up an attempt. Those without a delay return to their old place
    in their lanes. Those that crashed use up a stall. Returns the outcomes that are not DONE, by
    index.
    """
    shard.clocks.advance(now)
    exceptions: NotDone = []
    batch: dict[int, tuple[_Kind, int]] = {}
    crashed: dict[int, LostLease] = {}
    for index, item in enumerate(items):
        lease = held(shard, item.id, item.delivery)
        if isinstance(lease, SettleOutcome):
            exceptions.append((index, lease))
        elif item.id in batch or item.id in crashed:
            exceptions.append((index, _LEASE_LOST))
        elif item.why is _CRASHED:
            crashed[item.id] = LostLease(lease, item.id, cast(Holder, lease.holder))
            if isinstance(lease, Job) and lease.cancel_requested:
                exceptions.append((index, _CANCELLED))
        elif isinstance(lease, Job) and lease.cancel_requested:
            shard.emit(JobsCancelled(now.wall_ms, [item.id], [1]), volatile=lease.volatile)
            exceptions.append((index, _CANCELLED))
        elif isinstance(lease, Job) and _is_released_for_good(lease, item.why):
            died = JobDied(now.wall_ms, item.id, EndReason.MAX_ATTEMPTS_EXCEEDED, RELEASES_USED_UP)
            shard.emit(died, volatile=lease.volatile)
        else:
            run_at_ms = now.wall_ms + item.delay_ms if item.delay_ms else 0
            if item.until_ms and not item.limiter:
                if isinstance(lease, Job) and lease.ties.group:
                    limit_group_as_told(shard, now, lease, item.until_ms)
                else:
                    limit_as_told(shard, now, lease, item.until_ms)
            batch[item.id] = (_kind_of(lease, item.why), run_at_ms)
    _emit_released(shard, now, batch)
    lose_leases(shard, now, crashed.values())
    return exceptions


def _is_released_for_good(job: Job, why: ReleaseReason) -> bool:
    """Returns whether workers have released the job as often as they may."""
    return why is not ReleaseReason.UNDELIVERED and job.releases >= limits.RELEASES_MAX


def _kind_of(lease: Job | RunLease, why: ReleaseReason) -> _Kind:
    owner = lease if isinstance(lease, Job) else lease.lot
    worker = lease.holder.worker if lease.holder else ""
    return owner.queue.name, why, worker, owner.volatile


def _emit_released(shard: ShardView, now: Now, batch: dict[int, tuple[_Kind, int]]) -> None:
    """Emits one fact for neighbours on the list that are of one kind."""
    for (queue, why, worker, volatile), alike in groupby(batch.items(), lambda entry: entry[1][0]):
        jobs = [(job_id, due) for job_id, (_, due) in alike]
        ids, run_at_ms = [job_id for job_id, _ in jobs], [due for _, due in jobs]
        run_at_ms = run_at_ms if any(run_at_ms) else []
        fact = JobsReleased(now.wall_ms, queue, ids, run_at_ms, why, worker)
        shard.emit(fact, volatile=volatile)


def decide_extend(shard: ShardView, now: Now, items: list[ExtendItem]) -> NotDone:
    """Extends leases, and records phases, progress, checkpoints and log lines. Returns the outcomes
    that are not DONE, by index. Call `check_phases` before.

    The end of a lease is bookkeeping, so extending it emits no fact; a report of the worker does.
    """
    exceptions: NotDone = []
    for index, item in enumerate(items):
        lease = held(shard, item.id, item.delivery)
        if isinstance(lease, SettleOutcome):
            exceptions.append((index, lease))
            continue
        until_ms = now.mono_ms + (item.lease_ms or lease.lease_ms)
        shard.clocks.extend(lease, item.id, until_ms)
        if item.phase:
            finish_phase(shard, now, item, lease)
        owner = lease if isinstance(lease, Job) else lease.lot
        if (
            item.progress is not None
            or item.message is not None
            or item.worker_checkpoint is not None
        ):
            fact = JobReported(
                at_ms=now.wall_ms,
                queue=owner.queue.name,
                id=item.id,
                progress=progress_of(shard, item) if owner.options.rules.phases else item.progress,
                message=item.message,
                worker_checkpoint=item.worker_checkpoint,
            )
            shard.emit(fact, volatile=owner.volatile)
        if item.lines:
            log_lines(shard, now, item.id, lease, item.lines)
        if isinstance(lease, Job) and lease.cancel_requested:
            exceptions.append((index, _CANCELLED))
    return exceptions
