"""Explains where a READY job stands in a queue whose jobs age."""

from __future__ import annotations

from jobline_server.engine.decide.by_age import AgedAt, by_age
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.open_lanes import OpenLanes
from jobline_server.engine.queue import Queue
from jobline_server.engine.ranks import Names

# The most items that are looked at for one explanation.
WALK_MAX = 5_000
# Greater than every offset.
_ALL = 1 << 62


def aged_at(queue: Queue, wall_ms: int) -> AgedAt | None:
    """Returns how the jobs of a queue have aged until now; None if they do not."""
    ageing = queue.settings.ageing
    return None if ageing is None else AgedAt(ageing, wall_ms)


def aged_ahead(lanes: OpenLanes, owner: Job | Lot, names: Names, aged: AgedAt) -> tuple[int, bool]:
    """Returns how many ready jobs of these names (None: any) go before the first one of `owner`,
    and whether all were counted. If its own lane is closed, those that would count as higher.
    """
    ranks = lanes.some_fronts(names, None, seed=aged.seed())
    place = -aged.priority(owner), owner.order
    ahead = higher = 0
    for number, item in enumerate(by_age(ranks, _ALL, None, aged)):
        if item is owner:
            return ahead, True
        if number == WALK_MAX:
            return ahead, False
        waiting = item.waiting() if isinstance(item, Lot) else 1
        ahead += waiting
        higher += waiting * ((-aged.priority(item), item.order) < place)
    return higher, True


def risen(owner: Job | Lot, aged: AgedAt | None) -> str:
    """Returns what to add about a job that counts as more than its priority."""
    priority = owner.options.priority
    now = priority if aged is None else aged.priority(owner)
    return "" if now == priority else f"; by its age its priority {priority} counts as {now}"
