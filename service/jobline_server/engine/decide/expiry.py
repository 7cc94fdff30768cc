"""Expiry: ends leases that have expired, or whose job has crashed in a worker that lives.

A lost worker with a hundred thousand jobs takes about a second, so the work is done in slices. A
slice continues where the last one ended, and each job returns to its old place in its lane, so
the order does not depend on the slices.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from jobline_server.engine import effective, limits
from jobline_server.engine.entries import JobDied, JobsCancelled, JobsStalled
from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Job
from jobline_server.engine.lease_lookup import LeaseLookup
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.rules import is_past_retries
from jobline_server.engine.values import EndReason, Now
from jobline_server.engine.view import ShardView

_Kind = tuple[str, bool, EndReason, str]
"""The properties that jobs must share to share a fact: queue, volatile, reason, worker."""


class LostLease(NamedTuple):
    """A lease of one job that has expired, or whose job has crashed."""

    lease: RunLease | Job
    job_id: int
    holder: Holder

    @property
    def owner(self) -> Job | Lot:
        """The job, or the lot that it is in."""
        return self.lease if isinstance(self.lease, Job) else self.lease.lot

    @property
    def stalls(self) -> int:
        """How many stalls the job has used up, this one included."""
        return self.lease.stalls + 1 if isinstance(self.lease, Job) else 1

    @property
    def reason(self) -> EndReason:
        """STALLED while the worker is connected, WORKER_LOST once it has disconnected."""
        return EndReason.STALLED if self.holder.disconnected_ms is None else EndReason.WORKER_LOST


def expire_due(shard: ShardView, now: Now) -> bool:
    """Ends a slice of the expired leases; returns whether more may be due now. If it raises, the
    leases of the slice are due again.
    """
    lookups: list[LeaseLookup] = []
    try:
        is_over = _expire_slice(shard, now, lookups)
    except BaseException:
        shard.clocks.repeat(now, lookups)
        raise
    return not is_over


def _expire_slice(shard: ShardView, now: Now, lookups: list[LeaseLookup]) -> bool:
    """Examines due holders until the slice is full; returns whether all were examined."""
    clocks = shard.clocks
    lost: list[LostLease] = []
    examined, is_over, is_complete = 0, False, True
    while len(lost) < limits.LOST_SLICE_JOBS and examined < limits.EXAMINED_SLICE_LEASES:
        lookup = clocks.next_lookup(now)
        if lookup is None:
            is_over = True
            break
        lookups.append(lookup)
        before = lookup.examined
        found, is_complete = lookup.take(
            now.mono_ms,
            lost_max=limits.LOST_SLICE_JOBS - len(lost),
            examined_max=limits.EXAMINED_SLICE_LEASES - examined,
        )
        lost += [LostLease(lease, job_id, lookup.holder) for lease, job_id in found]
        # A holder without leases costs something, too.
        examined += lookup.examined - before + 1
    lose_leases(shard, now, lost)
    for lookup in lookups:
        lookup.fold()
        # Only the last lookup of the slice can be incomplete.
        if lookup is lookups[-1] and not is_complete:
            clocks.leave(lookup)
        else:
            clocks.finish(now, lookup)
    return is_over


def lose_leases(shard: ShardView, now: Now, lost: Iterable[LostLease]) -> None:
    """Ends leases: each job uses up a stall and becomes READY, SCHEDULED, CANCELLED or DEAD; one
    that may be handed out only once is DEAD. A job that is cancelled stalls first, so that its
    history shows the lost lease.
    """
    stalled: list[tuple[LostLease, int]] = []
    cancelled: tuple[list[int], list[int]] = ([], [])
    for lost_lease in lost:
        lease, job_id, owner = lost_lease.lease, lost_lease.job_id, lost_lease.owner
        if isinstance(lease, Job) and lease.cancel_requested:
            stalled.append((lost_lease, 0))
            cancelled[owner.volatile].append(job_id)
            continue
        pause = _pause_after(owner, job_id, lost_lease.stalls)
        reason = _death_of(lost_lease, now.wall_ms + pause)
        if reason is None:
            stalled.append((lost_lease, now.wall_ms + pause if pause else 0))
        else:
            died = JobDied(now.wall_ms, job_id, reason, None)
            shard.emit(died, volatile=owner.volatile)
    _emit_stalled(shard, now, stalled)
    for volatile in (False, True):
        if ids := cancelled[volatile]:
            shard.emit(JobsCancelled(now.wall_ms, ids, [1] * len(ids)), volatile=volatile)


def _death_of(lost: LostLease, goes_on_ms: int) -> EndReason | None:
    """Returns why a job is DEAD that would go on at this time; None if it does."""
    options, settings = lost.owner.options, lost.owner.queue.settings
    if effective.is_once(options, settings):
        return EndReason.INTERRUPTED
    if lost.stalls > effective.max_stalls(options, settings):
        return lost.reason
    if is_past_retries(options.rules, goes_on_ms):
        return EndReason.RETRY_UNTIL_PASSED
    return None


def _pause_after(owner: Job | Lot, job_id: int, stalls: int) -> int:
    """Returns the backoff after a stall, in milliseconds: none after the first one."""
    if stalls == 1:
        return 0
    return effective.backoff_ms(owner.options, owner.queue.settings, job_id, stalls - 1)


def _emit_stalled(shard: ShardView, now: Now, stalled: list[tuple[LostLease, int]]) -> None:
    """Emits one fact per kind. Their order does not matter: each job returns to its place."""
    alike: dict[_Kind, list[tuple[int, int]]] = {}
    for lost_lease, due_ms in stalled:
        alike.setdefault(_kind_of(lost_lease), []).append((lost_lease.job_id, due_ms))
    for (queue, volatile, reason, worker), jobs in alike.items():
        ids, run_at_ms = [job_id for job_id, _ in jobs], [due_ms for _, due_ms in jobs]
        run_at_ms = run_at_ms if any(run_at_ms) else []
        fact = JobsStalled(now.wall_ms, queue, ids, run_at_ms, reason, worker)
        shard.emit(fact, volatile=volatile)


def _kind_of(lost: LostLease) -> _Kind:
    owner = lost.owner
    return owner.queue.name, owner.volatile, lost.reason, lost.holder.worker
