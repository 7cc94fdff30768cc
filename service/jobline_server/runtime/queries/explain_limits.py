"""Explains by which limits a READY job waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from jobline_server.engine.allowance import Allowance, TimeLimit
from jobline_server.engine.items import Item
from jobline_server.engine.limiters import Limiters
from jobline_server.engine.queue import Queue
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.values import JobState, Now
from jobline_server.runtime.obstacles import Obstacle, ObstacleKind


def limits_of(queue: Queue, allowance: Allowance, item: Item, now: Now) -> Iterator[Obstacle]:
    """Yields the limits of a queue that let none of these jobs out now."""
    active = queue.counts[JobState.ACTIVE]
    yield from _in_force(f"queue {queue.name}", allowance, queue.limited, active, item, now)


def limiters_of(limiters: Limiters, item: Item, now: Now) -> Iterator[Obstacle]:
    """Yields the limits of named limiters that let none of these jobs out now."""
    for name in item.options.rules.limiters:
        limiter = limiters.find(name)
        if limiter is None or limiter.settings is None:
            continue
        whose, limited = f"limiter {name}", limiter.settings.limited
        for each in _in_force(whose, limiter.allowance, limited, limiter.active, item, now):
            yield replace(each, kind=ObstacleKind.LIMITER)


def _in_force(
    whose: str,
    allowance: Allowance,
    limited: TimeLimit | None,
    active: int,
    item: Item,
    now: Now,
) -> Iterator[Obstacle]:
    if limited is not None and limited.until_ms > now.wall_ms:
        by = f", limited by {limited.by}" if limited.by else ""
        why = f": {limited.reason}" if limited.reason else ""
        message = f"{whose} lets nothing out for a time{by}{why}"
        yield Obstacle(ObstacleKind.LIMITED_FOR_A_TIME, message, limited.until_ms)
    most = allowance.concurrency
    if most is not None and active >= most:
        jobs = "job" if active == 1 else "jobs"
        message = f"{whose} has {active:,} active {jobs}; {most:,} may be active at once"
        yield Obstacle(ObstacleKind.CONCURRENCY_LIMITED, message, count=active)
    price = allowance.price(item.options.rules.cost)
    if allowance.bucket is not None and allowance.tokens(now.mono_ms) < price:
        wait_ms = allowance.bucket.next_ms(price, now.mono_ms) - now.mono_ms
        message = f"{whose} has used up its rate of {told(allowance.bucket.limit)}"
        yield Obstacle(ObstacleKind.RATE_LIMITED, message, now.wall_ms + wait_ms)


def told(rate: RateLimit) -> str:
    """Returns a rate as operators read it."""
    return f"{rate.rate:,} in {rate.period_ms / 1_000:,g} s"
