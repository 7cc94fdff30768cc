"""Timers: what becomes due by itself, and leases that are lost.

`tick` does what is due, a slice at a time; `next_deadline` says when to call again.
"""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

from jobline_server.engine import effective, limits
from jobline_server.engine.entries import (
    JobDied,
    JobsCancelled,
    JobsReady,
    JobsStalled,
)
from jobline_server.engine.holder import Holder, LeaseWheel
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import EndReason, Now, RevokeReason


def tick(shard: Shard, now: Now) -> bool:
    """Does what is due, at most a slice of it, and says whether more is due at once."""
    more = _make_due_ready(shard, now)
    more |= _expire_due(shard, now)
    more |= shard.forget_keys(shard.age.at(now), limits.SLICE_KEYS)
    return more


def next_deadline(shard: Shard, now: Now) -> int | None:
    """In how many milliseconds something may be due; None if nothing is waited for."""
    waits: list[int] = []
    due_ms = shard.delayed.first_ms()
    if due_ms is not None:
        waits.append(due_ms - now.wall_ms)
    wheel = shard.wheel.next_deadline()
    if wheel is not None:
        waits.append(wheel - now.mono_ms)
    return max(min(waits), 0) if waits else None


def _make_due_ready(shard: Shard, now: Now) -> bool:
    """Delayed jobs whose time has come go to their lanes, in the order of their time."""
    delayed = shard.delayed
    ready = _Ready(now)
    last: tuple[int, int] | None = None
    for _ in range(limits.SLICE_ITEMS):
        due = delayed.pop_due(now.wall_ms)
        if due is None:
            break
        # A job that was put off twice to the same moment lies here twice.
        if due == last:
            continue
        last = run_at_ms, first_id = due
        job, lot = shard.put_off(run_at_ms, first_id)
        # A job that left the head of its lot goes before what is left of that.
        if job is not None:
            ready.fact_for(job, is_lot=False).ids.append(first_id)
        if lot is not None:
            ready.fact_for(lot, is_lot=True).lots.append(first_id)
    for fact, volatile in ready.facts:
        shard.emit(fact, volatile=volatile)
    due_ms = delayed.first_ms()
    return due_ms is not None and due_ms <= now.wall_ms


class _Ready:
    """Facts that make jobs ready, as few as keep the order: within one, lots come first."""

    def __init__(self, now: Now) -> None:
        self._now = now
        self._newest: dict[str, tuple[JobsReady, bool]] = {}
        self.facts: list[tuple[JobsReady, bool]] = []

    def fact_for(self, item: Job | Lot, *, is_lot: bool) -> JobsReady:
        """The fact that this item may follow in."""
        name = item.queue.name
        newest = self._newest.get(name)
        if newest is None or newest[1] is not item.volatile or (is_lot and newest[0].ids):
            newest = JobsReady(self._now.wall_ms, name, [], []), item.volatile
            self._newest[name] = newest
            self.facts.append(newest)
        return newest[0]


def _expire_due(shard: Shard, now: Now) -> bool:
    """Ends the leases whose time is up, of as many holders as make a slice: what a lost lease costs
    is its job's, but a holder is looked at as a whole. Says whether more holders are due.
    """
    due = shard.wheel.due(now.mono_ms)
    taken, leases = 0, 0
    while taken < len(due) and leases < limits.SLICE_ITEMS:
        leases += due[taken].tally.jobs
        taken += 1
    _expire(shard, now, due[:taken])
    shard.wheel.put_back(due[taken:], now.mono_ms)
    return taken < len(due)


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
        return EndReason.STALLED if self.holder.lost_ms is None else EndReason.WORKER_LOST


def _expire(shard: Shard, now: Now, holders: list[Holder]) -> None:
    """Ends those leases of these holders whose time is up, and looks at them again later."""
    lost = [
        _Lost(lease, job_id, holder)
        for holder in holders
        for lease in holder.leases.values()
        for job_id in holder.lost_ids(lease, now.mono_ms)
    ]
    _lose_leases(shard, now, lost)
    for lease in dict.fromkeys(one.lease for one in lost):
        if isinstance(lease, RunLease) and lease.remaining:
            lease.fold()
    for holder in holders:
        check_ms = holder.next_check()
        if check_ms is not None:
            shard.wheel.arm(holder, max(check_ms, now.mono_ms))
        elif holder.lost_ms is not None:
            shard.forget_holder(holder)


def _lose_leases(shard: Shard, now: Now, lost: list[_Lost]) -> None:
    """Takes leases away: the job uses a stall, and goes on, waits, is cancelled, or is dead. Those
    that go on at once stand at the front of their lanes, in the order in which they stood there
    before, whoever had them. One that is cancelled lost its lease first: its history says so.
    """
    stalled: list[tuple[_Lost, int]] = []
    cancelled: tuple[list[int], list[int]] = ([], [])
    for one in lost:
        lease, job_id, holder = one
        shard.revoked.append((holder, job_id, lease.delivery, RevokeReason.LEASE_LOST))
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
    stalled.sort(key=lambda entry: (entry[0].owner.order, entry[0].job_id))
    _emit_stalled(shard, now, stalled)
    for volatile in (False, True):
        if ids := cancelled[volatile]:
            shard.emit(JobsCancelled(now.wall_ms, ids, [1] * len(ids)), volatile=volatile)


def _pause_after(owner: Job | Lot, job_id: int, stalls: int) -> int:
    """A first stall costs no time; later ones do."""
    if stalls == 1:
        return 0
    return effective.backoff_ms(owner.options, owner.queue.settings, job_id, stalls - 1)


def _emit_stalled(shard: Shard, now: Now, stalled: list[tuple[_Lost, int]]) -> None:
    """One fact for neighbours of one queue that are alike. The last ones go to the front first, so
    that the first ones stand before them in the end.
    """
    parts = [
        (kind, [(one.job_id, due) for one, due in part])
        for kind, part in groupby(stalled, _kind_of)
    ]
    for (queue, volatile, reason, worker), part in reversed(parts):
        ids, run_at_ms = [job_id for job_id, _ in part], [due for _, due in part]
        run_at_ms = run_at_ms if any(run_at_ms) else []
        fact = JobsStalled(now.wall_ms, queue, ids, run_at_ms, reason, worker)
        shard.emit(fact, volatile=volatile)


def _kind_of(entry: tuple[_Lost, int]) -> tuple[str, bool, EndReason, str]:
    """What the jobs of one fact share."""
    one, _ = entry
    owner = one.owner
    return owner.queue.name, owner.volatile, one.reason, one.holder.worker


def disconnect(shard: Shard, now: Now, holder: Holder, *, grace_ms: int) -> None:
    """A worker's stream broke: its leases outlive that by `grace_ms`, if they last that long."""
    holder.lost_ms = now.mono_ms
    holder.grace_ms = grace_ms
    check_ms = holder.next_check()
    if check_ms is None:
        shard.forget_holder(holder)
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
            lease.renew(now.mono_ms)
            holders[id(lease.holder)] = lease.holder
    for job in shard.jobs.values():
        if job.holder is not None:
            job.deadline_ms = now.mono_ms + job.lease_ms
            holders[id(job.holder)] = job.holder
    shard.wheel = LeaseWheel()
    for holder in holders.values():
        holder.heard_ms, holder.armed = now.mono_ms, None
        if holder.session:
            # Nobody is connected yet: each lease runs its own length from now.
            holder.lost_ms = now.mono_ms
            holder.grace_ms = limits.LEASE_MS_MAX
        check_ms = holder.next_check()
        if check_ms is not None:
            shard.wheel.arm(holder, check_ms)
