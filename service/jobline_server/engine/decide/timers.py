"""Timers: what becomes due by itself.

`open_gates` and `tick` do what is due, a slice at a time; `next_deadline` says when to call them
again. Leases whose time is up are `expiry`'s.
"""

from __future__ import annotations

from jobline_server.engine import limits
from jobline_server.engine.decide.expiry import expire_due
from jobline_server.engine.entries import (
    JobsReady,
)
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import Now
from jobline_server.engine.view import ShardView


def tick(shard: ShardView, now: Now) -> bool:
    """Does what is due, at most a slice of it, and says whether more is due at once."""
    more = _make_due_ready(shard, now)
    more |= expire_due(shard, now)
    more |= shard.forget_keys(shard.age.at(now), limits.SLICE_KEYS)
    return more


def open_gates(shard: ShardView, now: Now) -> list[Queue]:
    """Opens a slice of the gates whose moment has come; returns the queues that may have something
    to dispatch. That time goes by is no fact, and neither is this.
    """
    queues = shard.gates.open_due(now.mono_ms, limits.SLICE_ITEMS)
    return [queue for queue in queues if shard.queues.get(queue.name) is queue]


def next_deadline(shard: ShardView, now: Now) -> int | None:
    """In how many milliseconds something may be due; None if nothing is waited for."""
    waits: list[int] = []
    due_ms = shard.delayed.first_ms()
    if due_ms is not None:
        waits.append(due_ms - now.wall_ms)
    opens_ms = shard.gates.first_ms()
    if opens_ms is not None:
        waits.append(opens_ms - now.mono_ms)
    lease_ms = shard.clocks.next_deadline()
    if lease_ms is not None:
        waits.append(lease_ms - now.mono_ms)
    return max(min(waits), 0) if waits else None


def _make_due_ready(shard: ShardView, now: Now) -> bool:
    """Delayed jobs whose time has come go to their lanes, in the order of their time."""
    delayed = shard.delayed
    ready = _Ready(now)
    taken: list[tuple[int, int]] = []
    try:
        _take_due(shard, now, ready, taken)
        for fact, volatile in ready.facts:
            shard.emit(fact, volatile=volatile)
    except BaseException:
        # None is forgotten; those that are ready by now are passed over the next time.
        for run_at_ms, first_id in taken:
            delayed.add(run_at_ms, first_id)
        raise
    due_ms = delayed.first_ms()
    return due_ms is not None and due_ms <= now.wall_ms


def _take_due(shard: ShardView, now: Now, ready: _Ready, taken: list[tuple[int, int]]) -> None:
    """Gathers a slice of what is due in facts."""
    for _ in range(limits.SLICE_ITEMS):
        due = shard.delayed.pop_due(now.wall_ms)
        if due is None:
            break
        # A job that was put off twice to the same moment lies here twice.
        if taken and due == taken[-1]:
            continue
        taken.append(due)
        run_at_ms, first_id = due
        job, lot = shard.delayed_at(run_at_ms, first_id)
        # A job that left the head of its lot goes before what is left of that.
        if job is not None:
            ready.fact_for(job, is_lot=False).ids.append(first_id)
        if lot is not None:
            ready.fact_for(lot, is_lot=True).lots.append(first_id)


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
