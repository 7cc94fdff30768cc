"""Expiry: leases whose time is up.

Losing a worker with a hundred thousand jobs is work for a second, so it is done in slices. A slice
goes on where the one before ended, and each job goes back to the place in its lane that it had, so
that the order is the same however the work was cut.
"""

from __future__ import annotations

from typing import NamedTuple

from jobline_server.engine import effective, limits
from jobline_server.engine.entries import JobDied, JobsCancelled, JobsStalled
from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Job
from jobline_server.engine.lease_lookup import LeaseLookup
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.values import EndReason, Now
from jobline_server.engine.view import ShardView

_Kind = tuple[str, bool, EndReason, str]
"""What the jobs of one fact share: queue, durability, reason, worker."""


class _Lost(NamedTuple):
    """A lease that ends, on one job."""

    lease: RunLease | Job
    job_id: int
    holder: Holder

    @property
    def owner(self) -> Job | Lot:
        """Where the job stands."""
        return self.lease if isinstance(self.lease, Job) else self.lease.lot

    @property
    def reason(self) -> EndReason:
        """Why it ends."""
        return EndReason.STALLED if self.holder.disconnected_ms is None else EndReason.WORKER_LOST


def expire_due(shard: ShardView, now: Now) -> bool:
    """Ends a slice of the leases whose time is up; returns whether more may be due at once. If it
    raises, those that it was about are due again.
    """
    lookups: list[LeaseLookup] = []
    try:
        is_over = _expire_slice(shard, now, lookups)
    except BaseException:
        shard.clocks.repeat(now, lookups)
        raise
    return not is_over


def _expire_slice(shard: ShardView, now: Now, lookups: list[LeaseLookup]) -> bool:
    """Looks at holders that are due until the slice is full; returns whether all were looked at."""
    clocks = shard.clocks
    lost: list[_Lost] = []
    looked, is_over, has_ended = 0, False, True
    while len(lost) < limits.LOST_SLICE_JOBS and looked < limits.LOOKED_SLICE_LEASES:
        lookup = clocks.next_lookup(now)
        if lookup is None:
            is_over = True
            break
        lookups.append(lookup)
        before = lookup.looked
        found, has_ended = lookup.take(
            now.mono_ms,
            lost_max=limits.LOST_SLICE_JOBS - len(lost),
            looked_max=limits.LOOKED_SLICE_LEASES - looked,
        )
        lost += [_Lost(lease, job_id, lookup.holder) for lease, job_id in found]
        # A holder costs something, too, if it has no lease any more.
        looked += lookup.looked - before + 1
    _lose_leases(shard, now, lost)
    for lookup in lookups:
        lookup.fold()
        # Only the slice's last one can have more to look at.
        if lookup is lookups[-1] and not has_ended:
            clocks.leave(lookup)
        else:
            clocks.finish(now, lookup)
    return is_over


def _lose_leases(shard: ShardView, now: Now, lost: list[_Lost]) -> None:
    """Takes leases away: the job uses a stall, and goes on, waits, is cancelled, or is dead. One
    that is cancelled lost its lease first: its history says so.
    """
    stalled: list[tuple[_Lost, int]] = []
    cancelled: tuple[list[int], list[int]] = ([], [])
    for one in lost:
        lease, job_id, _ = one
        owner = one.owner
        stalls = lease.stalls + 1 if isinstance(lease, Job) else 1
        if isinstance(lease, Job) and lease.cancel_requested:
            stalled.append((one, 0))
            cancelled[owner.volatile].append(job_id)
        elif stalls > effective.max_stalls(owner.options, owner.queue.settings):
            shard.emit(JobDied(now.wall_ms, job_id, one.reason, None), volatile=owner.volatile)
        else:
            pause = _pause_after(owner, job_id, stalls)
            stalled.append((one, now.wall_ms + pause if pause else 0))
    _emit_stalled(shard, now, stalled)
    for volatile in (False, True):
        if ids := cancelled[volatile]:
            shard.emit(JobsCancelled(now.wall_ms, ids, [1] * len(ids)), volatile=volatile)


def _pause_after(owner: Job | Lot, job_id: int, stalls: int) -> int:
    """A first stall costs no time; later ones do."""
    if stalls == 1:
        return 0
    return effective.backoff_ms(owner.options, owner.queue.settings, job_id, stalls - 1)


def _emit_stalled(shard: ShardView, now: Now, stalled: list[tuple[_Lost, int]]) -> None:
    """One fact for those that are alike, in any order: each goes where it stood."""
    alike: dict[_Kind, list[tuple[int, int]]] = {}
    for one, due_ms in stalled:
        alike.setdefault(_kind_of(one), []).append((one.job_id, due_ms))
    for (queue, volatile, reason, worker), part in alike.items():
        ids, run_at_ms = [job_id for job_id, _ in part], [due_ms for _, due_ms in part]
        run_at_ms = run_at_ms if any(run_at_ms) else []
        fact = JobsStalled(now.wall_ms, queue, ids, run_at_ms, reason, worker)
        shard.emit(fact, volatile=volatile)


def _kind_of(one: _Lost) -> _Kind:
    owner = one.owner
    return owner.queue.name, owner.volatile, one.reason, one.holder.worker
