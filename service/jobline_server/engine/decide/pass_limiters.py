"""Pass limiters: cuts a hand-out to what named limiters let out.

A job that passes several limiters takes from all of them or from none. A lane whose next job does
not pass has its gate closed and waits in the line of the limiter that refused it, so later pulls do
not come upon it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from jobline_server.engine.decide.choice import Choice, LotRun
from jobline_server.engine.decide.choose import choose
from jobline_server.engine.items import Item
from jobline_server.engine.job import Job
from jobline_server.engine.lane import LaneKey, lane_key
from jobline_server.engine.limiters import Limiter, Limiters
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import Now
from jobline_server.engine.view import ShardView

# Choices of one hand-out, each of which closed lanes and kept no job, and jobs examined in them,
# about 15 µs each. The next iteration of the loop goes on.
CHOICES_MAX = 50
EXAMINED_MAX = 1_000


class _Passing:
    """What limiters still let out while jobs of one hand-out pass them one after another."""

    def __init__(self, limiters: Limiters, now: Now) -> None:
        self._limiters = limiters
        self._now = now
        # Jobs and tokens that are taken by those before, by name.
        self._taken: dict[str, tuple[int, int]] = {}

    def fits(self, item: Item, count: int) -> tuple[int, Limiter | None]:
        """Returns how many of `count` jobs of an item pass, and the limiter that stops the rest."""
        stops: Limiter | None = None
        cost = item.options.rules.cost
        limiters = [self._limiters.find(name) for name in item.options.rules.limiters]
        found = [limiter for limiter in limiters if limiter is not None]
        for limiter in found:
            fits = self._room(limiter, cost)
            if fits < count:
                count, stops = fits, limiter
        for limiter in found:
            jobs, tokens = self._taken.get(limiter.name, (0, 0))
            price = limiter.allowance.price(cost)
            self._taken[limiter.name] = jobs + count, tokens + count * price
        return count, stops

    def _room(self, limiter: Limiter, cost: int) -> int:
        jobs, taken = self._taken.get(limiter.name, (0, 0))
        allowance, now = limiter.allowance, self._now
        places = allowance.places(now, limiter.active) - jobs
        tokens = allowance.tokens(now.mono_ms) - taken
        return max(min(places, tokens // allowance.price(cost)), 0)


def choose_passing(
    shard: ShardView, now: Now, queue: Queue, names: frozenset[str] | None, chosen: Choice
) -> None:
    """Adds the next jobs of `queue` that their limiters let out, as `choose` does."""
    room = chosen.jobs_room, chosen.bytes_room, chosen.slots_room
    may_pass = bool((queue.needing or queue.gates.own) and shard.limiters)
    examined = 0
    for _ in range(CHOICES_MAX):
        choose(queue, names, now, shard.committed, chosen)
        examined += len(chosen.items)
        if not may_pass or not _keep_passing(shard, now, queue, chosen):
            return
        chosen.jobs_room, chosen.bytes_room, chosen.slots_room = room
        if examined >= EXAMINED_MAX:
            break
    chosen.is_cut_short = True
    shard.gates.ask_again(queue, now.mono_ms)


def _keep_passing(shard: ShardView, now: Now, queue: Queue, chosen: Choice) -> bool:
    """Drops the jobs that limiters do not let out, and closes the gates of their lanes. Returns
    whether others may go out instead: then nothing was kept.
    """
    closed: dict[LaneKey, tuple[Limiter, int]] = {}
    chosen.items[:] = _kept(shard.limiters, now, chosen.items, closed)
    for key, (limiter, cost) in closed.items():
        queue.close_gate(key)
        shard.limiters.wait(limiter, now, queue, key, cost)
    if closed and chosen.items:
        # Jobs of other lanes may go out in the place of those that were dropped.
        shard.gates.ask_again(queue, now.mono_ms)
    return bool(closed) and not chosen.items


def _kept(
    limiters: Limiters,
    now: Now,
    items: list[Job | LotRun],
    closed: dict[LaneKey, tuple[Limiter, int]],
) -> Iterator[Job | LotRun]:
    """Yields the items, or parts of them, that pass; notes the lanes of the others."""
    passing = _Passing(limiters, now)
    for item in items:
        owner = item.lot if isinstance(item, LotRun) else item
        if not owner.options.rules.limiters:
            yield item
            continue
        key = lane_key(owner)
        if key in closed:
            continue
        count = item.count if isinstance(item, LotRun) else 1
        fits, stops = passing.fits(owner, count)
        if stops is not None:
            closed[key] = stops, owner.options.rules.cost
        if fits == count:
            yield item
        elif fits and isinstance(item, LotRun):
            yield replace(item, count=fits)
