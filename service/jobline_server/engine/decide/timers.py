"""Timers: makes delayed jobs ready, expires those whose TTL has passed, ends attempts that
take too long, opens gates, ends expired leases and forgets old keys.

`open_gates` and `tick` do a slice of what is due; `next_deadline` returns when to call them again.
"""

from __future__ import annotations

from jobline_server.engine import limits
from jobline_server.engine.decide.batches import (
    forget_batches,
    has_sendable,
    next_forgotten_ms,
    settle_batches,
)
from jobline_server.engine.decide.dependencies import end_block_timeouts, release_dependents
from jobline_server.engine.decide.expired import expire_waiting, has_due
from jobline_server.engine.decide.expiry import expire_due
from jobline_server.engine.decide.group_limits import open_groups
from jobline_server.engine.decide.timeouts import time_out_due
from jobline_server.engine.delayed import Entry
from jobline_server.engine.entries import JobsReady
from jobline_server.engine.group_rates import SWEEP_MS
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import Now
from jobline_server.engine.view import ShardView


def tick(shard: ShardView, now: Now) -> bool:
    """Does up to a slice of each kind of work that is due; returns whether more is due now."""
    shard.clocks.advance(now)
    more = expire_waiting(shard, now)
    more |= _make_due_ready(shard, now)
    more |= time_out_due(shard, now)
    more |= expire_due(shard, now)
    more |= open_groups(shard, now)
    # Jobs whose leases were lost may have come back too late.
    more |= has_due(shard, now)
    if shard.dependencies.has_any:
        more |= end_block_timeouts(shard, now, limits.SLICE_TIMEOUTS)
        more |= release_dependents(shard, now, limits.SLICE_DEPENDENTS)
    if shard.batches.has_work():
        more |= settle_batches(shard, now, limits.SLICE_BATCHES)
    if shard.batches.completed:
        more |= forget_batches(shard, now)
    more |= shard.forget_keys(shard.age.at(now), limits.SLICE_KEYS)
    return more


def open_gates(shard: ShardView, now: Now) -> list[Queue]:
    """Opens a slice of the gates that are due, and gives a slice of the reserved jobs away; returns
    the queues that may have jobs to dispatch. It emits no fact: only time has passed.
    """
    queues = shard.gates.open_due(now.mono_ms, limits.SLICE_ITEMS)
    queues += shard.sticky.give_due(now.mono_ms, shard.jobs, limits.STICKY_SLICE_JOBS)
    return [queue for queue in queues if shard.queues.get(queue.name) is queue]


def next_deadline(shard: ShardView, now: Now, *, with_sweeps: bool = True) -> int | None:
    """Returns in how many milliseconds something may be due; None if nothing is scheduled. Without
    `with_sweeps` it leaves out what only frees memory, which may be late.
    """
    waits = _waits_of_clocks(shard, now)
    if shard.closed_groups.has_any:
        group_ms = shard.closed_groups.wait_ms(now)
        if group_ms is not None:
            waits.append(group_ms)
    if shard.batches.due or (shard.batches.unsent and has_sendable(shard)):
        waits.append(0)
    elif shard.batches.completed:
        waits.append(next_forgotten_ms(shard) - now.wall_ms)
    if with_sweeps and shard.group_rates:
        waits.append(SWEEP_MS)
    if shard.dependencies.has_any:
        blocked_ms = shard.dependencies.timeouts.first_ms()
        if shard.dependencies.pending or shard.dependencies.unawaited:
            waits.append(0)
        elif blocked_ms is not None:
            waits.append(blocked_ms - now.wall_ms)
    return max(min(waits), 0) if waits else None


def _waits_of_clocks(shard: ShardView, now: Now) -> list[int]:
    """Returns in how many milliseconds the first job of each clock is due. A server that does
    nothing asks each shard for this several times a second.
    """
    by_wall = (shard.delayed.first_ms(), shard.expiring.first_ms())
    by_mono = (
        shard.gates.first_ms(),
        shard.sticky.first_ms(now.mono_ms),
        shard.clocks.timeouts.first_ms(),
        shard.clocks.next_deadline(),
    )
    waits: list[int] = []
    if by_wall != (None, None):
        waits += [at_ms - now.wall_ms for at_ms in by_wall if at_ms is not None]
    if by_mono != (None, None, None, None):
        waits += [at_ms - now.mono_ms for at_ms in by_mono if at_ms is not None]
    return waits


def _make_due_ready(shard: ShardView, now: Now) -> bool:
    """Makes a slice of the due SCHEDULED jobs READY, in the order in which `DelayedJobs` has them;
    returns whether more are due.
    """
    delayed = shard.delayed
    ready = _Ready(now)
    taken: list[Entry] = []
    try:
        _take_due(shard, now, ready, taken)
        for fact, volatile in ready.facts:
            shard.emit(fact, volatile=volatile)
    except BaseException:
        # No entry is lost; jobs that became ready are skipped the next time.
        for run_at_ms, first_id in taken:
            delayed.add(run_at_ms, first_id)
        raise
    due_ms = delayed.first_ms()
    return due_ms is not None and due_ms <= now.wall_ms


def _take_due(shard: ShardView, now: Now, ready: _Ready, taken: list[Entry]) -> None:
    """Collects a slice of the due jobs and lots into facts. Those that go to the front of their
    lanes come last, the first of each moment last of all: so they keep their order.
    """
    fronts: list[Entry] = []
    # A job that was delayed twice to the same time has two entries.
    taken += dict.fromkeys(shard.delayed.pop_many_due(now.wall_ms, limits.SLICE_DUE))
    for entry, (job, lot) in zip(taken, shard.delayed_at(taken), strict=True):
        run_at_ms, first_id = entry
        owner = job or lot
        if owner is not None and owner.options.rules.lifo:
            fronts.append((run_at_ms, -first_id))
            continue
        # A job that was taken off the head of its lot goes before the rest of the lot.
        if job is not None:
            ready.fact_for(job, is_lot=False).ids.append(first_id)
        if lot is not None:
            ready.fact_for(lot, is_lot=True).lots.append(first_id)
    fronts = [(run_at_ms, -negative) for run_at_ms, negative in sorted(fronts)]
    for (_, first_id), (job, lot) in zip(fronts, shard.delayed_at(fronts), strict=True):
        if lot is not None:
            ready.last_fact_for(lot, is_lot=True).lots.append(first_id)
        if job is not None:
            ready.last_fact_for(job, is_lot=False).ids.append(first_id)


class _Ready:
    """The fewest facts that make jobs ready in order: within one, lots come first."""

    def __init__(self, now: Now) -> None:
        self._now = now
        self._newest: dict[str, tuple[JobsReady, bool]] = {}
        self.facts: list[tuple[JobsReady, bool]] = []

    def fact_for(self, item: Job | Lot, *, is_lot: bool) -> JobsReady:
        """Returns the fact to add this item to, a new one if the order requires it."""
        name = item.queue.name
        newest = self._newest.get(name)
        if newest is None or newest[1] is not item.volatile or (is_lot and newest[0].ids):
            newest = JobsReady(self._now.wall_ms, name, [], []), item.volatile
            self._newest[name] = newest
            self.facts.append(newest)
        return newest[0]

    def last_fact_for(self, item: Job | Lot, *, is_lot: bool) -> JobsReady:
        """Returns the last fact to add this item to, a new one unless it is of its kind."""
        newest = self._newest.get(item.queue.name)
        if newest is not None and newest is not self.facts[-1]:
            del self._newest[item.queue.name]
        return self.fact_for(item, is_lot=is_lot)
