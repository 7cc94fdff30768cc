"""Timers: what becomes due by itself, and leases that are lost.

`tick` does what is due, a slice at a time; `next_deadline` says when to call again.
"""

from __future__ import annotations

import heapq

from jobline_server.engine import effective, limits
from jobline_server.engine.entries import (
    JobDied,
    JobsCancelled,
    JobsReady,
    JobsStalled,
    KeysExpired,
)
from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Job
from jobline_server.engine.lot import RunLease
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import EndReason, JobState, Now, RevokeReason


def tick(shard: Shard, now: Now) -> bool:
    """Does what is due, at most a slice of it, and says whether more is due at once."""
    more = _make_due_ready(shard, now)
    for holder in shard.wheel.due(now.mono_ms):
        expire(shard, now, holder)
    expiry = shard.keys.next_expiry_ms()
    if expiry is not None and expiry <= now.wall_ms:
        shard.emit(KeysExpired(now.wall_ms, expiry))
    return more


def next_deadline(shard: Shard, now: Now) -> int | None:
    """In how many milliseconds something may be due; None if nothing is waited for."""
    waits: list[int] = []
    if shard.delayed:
        waits.append(shard.delayed[0][0] - now.wall_ms)
    wheel = shard.wheel.next_deadline()
    if wheel is not None:
        waits.append(wheel - now.mono_ms)
    return max(min(waits), 0) if waits else None


def _make_due_ready(shard: Shard, now: Now) -> bool:
    """Delayed jobs whose time has come go to their lanes, in the order of their time."""
    heap, jobs, lots = shard.delayed, shard.jobs, shard.lots.lots
    ready: dict[tuple[str, bool], JobsReady] = {}
    taken = 0
    while heap and heap[0][0] <= now.wall_ms and taken < limits.SLICE_ITEMS:
        run_at_ms, first_id = heapq.heappop(heap)
        taken += 1
        job = jobs.get(first_id)
        lot = lots.get(first_id)
        if job is not None and job.state is JobState.SCHEDULED and job.run_at_ms == run_at_ms:
            _ready_of(ready, now, job.queue.name, volatile=job.volatile).ids.append(first_id)
        if lot is not None and lot.run_at_ms == run_at_ms:
            _ready_of(ready, now, lot.queue.name, volatile=lot.volatile).lots.append(first_id)
    for (_, volatile), fact in ready.items():
        shard.emit(fact, volatile=volatile)
    return bool(heap) and heap[0][0] <= now.wall_ms


def _ready_of(
    ready: dict[tuple[str, bool], JobsReady], now: Now, queue: str, *, volatile: bool
) -> JobsReady:
    fact = ready.get((queue, volatile))
    if fact is None:
        fact = ready[queue, volatile] = JobsReady(now.wall_ms, queue, [], [])
    return fact


def expire(shard: Shard, now: Now, holder: Holder) -> int:
    """Ends those leases of a holder whose time is up, looks at it again later, and says how many
    ended.
    """
    lost = [lease for lease in holder.leases.values() if holder.deadline_of(lease) <= now.mono_ms]
    reason = EndReason.STALLED if holder.lost_ms is None else EndReason.WORKER_LOST
    count = lose_leases(shard, now, holder, lost, reason)
    check_ms = holder.next_check()
    if check_ms is not None:
        shard.wheel.arm(holder, max(check_ms, now.mono_ms))
    elif holder.session and (holder.lost_ms is not None):
        shard.holders.pop(holder.session, None)
    return count


def lose_leases(
    shard: Shard, now: Now, holder: Holder, lost: list[RunLease | Job], reason: EndReason
) -> int:
    """Takes leases away: each job uses a stall, and goes on, waits, is cancelled, or is dead."""
    stalled: dict[tuple[str, bool], JobsStalled] = {}
    count = 0
    for lease in lost:
        ids = (
            [lease.id]
            if isinstance(lease, Job)
            else [lease.lot.first_id + index for index in lease.open_indexes()]
        )
        count += len(ids)
        delivery = lease.delivery
        for job_id in ids:
            shard.revoked.append((holder, job_id, delivery, RevokeReason.LEASE_LOST))
        _note_lost(shard, now, holder, lease, ids, reason, stalled)
    for (_, volatile), fact in stalled.items():
        if not any(fact.run_at_ms):
            fact.run_at_ms = []
        shard.emit(fact, volatile=volatile)
    return count


def _note_lost(
    shard: Shard,
    now: Now,
    holder: Holder,
    lease: RunLease | Job,
    ids: list[int],
    reason: EndReason,
    stalled: dict[tuple[str, bool], JobsStalled],
) -> None:
    owner = lease if isinstance(lease, Job) else lease.lot
    settings = owner.queue.settings
    stalls = lease.stalls + 1 if isinstance(lease, Job) else 1
    if isinstance(lease, Job) and lease.cancel_requested:
        shard.emit(JobsCancelled(now.wall_ms, ids, [1]), volatile=owner.volatile)
        return
    if stalls > effective.max_stalls(owner.options, settings):
        for job_id in ids:
            shard.emit(JobDied(now.wall_ms, job_id, reason, None), volatile=owner.volatile)
        return
    key = (owner.queue.name, owner.volatile)
    fact = stalled.get(key)
    if fact is None:
        fact = stalled[key] = JobsStalled(
            now.wall_ms, owner.queue.name, [], [], reason, holder.worker
        )
    for job_id in ids:
        pause = 0
        if stalls > 1:
            pause = effective.backoff_ms(owner.options, settings, job_id, stalls - 1)
        fact.ids.append(job_id)
        fact.run_at_ms.append(now.wall_ms + pause if pause else 0)


def disconnect(shard: Shard, now: Now, holder: Holder, *, grace_ms: int) -> None:
    """A worker's stream broke: its leases outlive that by `grace_ms`, if they last that long."""
    holder.lost_ms = now.mono_ms
    holder.grace_ms = grace_ms
    check_ms = holder.next_check()
    if check_ms is None:
        shard.holders.pop(holder.session, None)
    else:
        shard.wheel.arm(holder, check_ms)


def resume(shard: Shard, now: Now, holder: Holder) -> None:
    """The worker of a broken stream is back: it keeps its leases."""
    holder.lost_ms = None
    holder.heard_ms = now.mono_ms
    check_ms = holder.next_check()
    if check_ms is not None:
        shard.wheel.arm(holder, check_ms)


def restart_leases(shard: Shard, now: Now) -> None:
    """After recovery every lease gets its full time again, and the wheel starts afresh."""
    shard.mono_ms = now.mono_ms
    holders: dict[int, Holder] = {}
    for lot in shard.lots.lots.values():
        for lease in lot.leases:
            lease.deadline_ms = now.mono_ms + lease.lease_ms
            holders[id(lease.holder)] = lease.holder
    for job in shard.jobs.values():
        if job.holder is not None:
            job.deadline_ms = now.mono_ms + job.lease_ms
            holders[id(job.holder)] = job.holder
    shard.wheel.clear()
    for holder in holders.values():
        holder.heard_ms = now.mono_ms
        if holder.session:
            # Nobody is connected yet: each lease runs its own length from now.
            holder.lost_ms = now.mono_ms
            holder.grace_ms = limits.LEASE_MS_MAX
        check_ms = holder.next_check()
        if check_ms is not None:
            shard.wheel.arm(holder, check_ms)
