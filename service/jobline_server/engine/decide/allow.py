"""Allow: cuts a hand-out to what the limits of its queue let out.

When time has to pass before more goes out, a timer has the queue dispatched again, so that nobody
asks in between; when a job has to end, its end wakes the queue (`apply`). A job that costs more
tokens than there are holds up the jobs behind it: cheaper ones may not overtake it for ever.
"""

from __future__ import annotations

from dataclasses import replace

from jobline_server.engine.allowance import RECHECK_MS, Allowance
from jobline_server.engine.decide.choice import Choice, LotRun
from jobline_server.engine.items import Item
from jobline_server.engine.job import Job
from jobline_server.engine.queue import Queue
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.values import JobState, Now
from jobline_server.engine.view import ShardView

# Enum attribute access is slow before Python 3.12.
_ACTIVE = JobState.ACTIVE


def allowed_jobs(shard: ShardView, now: Now, queue: Queue, allowance: Allowance) -> int:
    """Returns how many jobs a queue may hand out now, if each costs one token. If none, the queue
    is dispatched again once it may.
    """
    places = allowance.places(now, queue.counts[_ACTIVE])
    allowed = min(places, allowance.tokens(now.mono_ms))
    if not allowed:
        ask_again(shard, now, queue, allowance)
    return allowed


def keep_affordable(
    shard: ShardView, now: Now, queue: Queue, allowance: Allowance, chosen: Choice
) -> None:
    """Drops the jobs from the first one on that costs more tokens than are left."""
    if allowance.bucket is None or all(
        _of(item).options.rules is NO_RULES for item in chosen.items
    ):
        return
    left = allowance.tokens(now.mono_ms)
    for at, item in enumerate(chosen.items):
        price = allowance.price(_of(item).options.rules.cost)
        count = item.count if isinstance(item, LotRun) else 1
        fits = min(left // price, count)
        left -= fits * price
        if fits < count:
            _cut(chosen, at, fits)
            if not chosen.items:
                ask_again(shard, now, queue, allowance, price)
            return


def ask_again(
    shard: ShardView, now: Now, queue: Queue, allowance: Allowance, cost: int = 1
) -> None:
    """Has the queue dispatched when a job of this cost may start, if only time has to pass."""
    at_ms = allowance.asked_again_ms(now, cost)
    if at_ms is not None:
        # Timers keep a queue until then, even if it is deleted.
        shard.gates.ask_again(queue, min(at_ms, now.mono_ms + RECHECK_MS))


def _of(item: Job | LotRun) -> Item:
    return item.lot if isinstance(item, LotRun) else item


def _cut(chosen: Choice, at: int, fits: int) -> None:
    """Keeps the items before index `at`, and the first `fits` jobs of that item."""
    run = chosen.items[at]
    del chosen.items[at:]
    if fits and isinstance(run, LotRun):
        chosen.items.append(replace(run, count=fits))
