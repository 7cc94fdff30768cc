"""Explains by which limits a READY job waits."""

from __future__ import annotations

from collections.abc import Iterator

from jobline_server.engine.allowance import Allowance
from jobline_server.engine.decide.allow import cost_of
from jobline_server.engine.items import Item
from jobline_server.engine.limiters import Limiters
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import JobState, Now
from jobline_server.runtime.obstacles import Obstacle, ObstacleKind


def limits_of(queue: Queue, allowance: Allowance, item: Item, now: Now) -> Iterator[Obstacle]:
    """Yields the limits of a queue that let none of these jobs out now."""
    limited, active = queue.limited, queue.counts[JobState.ACTIVE]
    if limited is not None and limited.until_ms > now.wall_ms:
        by = f" by {limited.by}" if limited.by else ""
        why = f": {limited.reason}" if limited.reason else ""
        message = f"queue {queue.name} lets nothing out until a time{by}{why}"
        yield Obstacle(ObstacleKind.LIMITED_FOR_A_TIME, message, limited.until_ms)
    most = allowance.concurrency
    if most is not None and active >= most:
        message = f"queue {queue.name} has {active} active jobs; {most} may be active at once"
        yield Obstacle(ObstacleKind.CONCURRENCY_LIMITED, message, count=active)
    price = allowance.price(cost_of(item))
    if allowance.bucket is not None and allowance.tokens(now.mono_ms) < price:
        wait_ms = allowance.bucket.next_ms(price, now.mono_ms) - now.mono_ms
        rate = allowance.bucket.limit
        message = f"queue {queue.name} has used up its rate of {rate.rate} in {rate.period_ms:,} ms"
        yield Obstacle(ObstacleKind.RATE_LIMITED, message, now.wall_ms + wait_ms)


def limiters_of(limiters: Limiters, item: Item, now: Now) -> Iterator[Obstacle]:
    """Yields the named limiters that let none of these jobs out now."""
    for name in item.options.rules.limiters:
        limiter = limiters.find(name)
        if limiter is None:
            continue
        allowance, cost = limiter.allowance, cost_of(item)
        is_full = not allowance.places(now, limiter.active)
        if is_full or allowance.tokens(now.mono_ms) < allowance.price(cost):
            again_ms = allowance.asked_again_ms(now, cost)
            until_ms = 0 if again_ms is None else now.wall_ms + again_ms - now.mono_ms
            message = f"limiter {name} lets it not start: {limiter.active} of its jobs are active"
            yield Obstacle(ObstacleKind.LIMITER, message, until_ms)
