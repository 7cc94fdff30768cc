"""By age: the order of hand-outs in a queue whose jobs age.

Each priority offers its first job; the one that counts as the highest now goes, and of equals the
one that is first in line. Then its priority offers the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush, merge
from operator import attrgetter
from typing import NamedTuple

from jobline_server.engine.ageing import Ageing
from jobline_server.engine.lane import Lane, LaneItem
from jobline_server.engine.ranked_lanes import Fronts

_order = attrgetter("order")
_Items = Iterator[LaneItem]
_Offer = tuple[int, int, int, LaneItem, "Fronts | _Items"]
"""The aged priority, negated, the order, and the priority, negated, of an item; the item; and the
lanes of its priority if it is their first, or the items behind it.
"""

# A multiplier that spreads moments which follow each other (Knuth, TAOCP 6.4).
_SPREAD = 2_654_435_761


class AgedAt(NamedTuple):
    """Ageing at one moment."""

    ageing: Ageing
    wall_ms: int

    def priority(self, item: LaneItem) -> int:
        """Returns the priority that an item counts as."""
        return item.options.priority + self.ageing.rise(self.wall_ms - item.waits_from_ms())

    def seed(self) -> int:
        """Returns a number that is another one at each moment."""
        return self.wall_ms * _SPREAD >> 16


def by_age(
    ranks: Iterable[tuple[int, Fronts]],
    committed: int,
    payload_bytes_max: int | None,
    aged_at: AgedAt,
) -> _Items:
    """Yields the items of some priorities, which come highest first, in their aged order. The lanes
    must not change meanwhile.
    """
    coming = _first_offers(ranks, committed, payload_bytes_max, aged_at)
    limit = aged_at.ageing.limit
    # Without a limit any may be the first of all.
    offers = list(coming) if limit is None else []
    heapify(offers)
    following = next(coming, None)
    # Ends when all items are taken: each round takes one at least.
    while offers or following:
        while following and (not offers or (limit or 0) - following[2] >= -offers[0][0]):
            heappush(offers, following)
            following = next(coming, None)
        _, _, negative, item, behind = heappop(offers)
        if not isinstance(behind, Iterator):
            behind = _in_order(behind, committed, payload_bytes_max)
            next(behind)
        while True:
            yield item
            succeeding = next(behind, None)
            if succeeding is None:
                break
            item = succeeding
            key = -aged_at.priority(item), item.order, negative
            if following or (offers and offers[0][:3] < key):
                heappush(offers, (*key, item, behind))
                break


def _first_offers(
    ranks: Iterable[tuple[int, Fronts]],
    committed: int,
    payload_bytes_max: int | None,
    aged_at: AgedAt,
) -> Iterator[_Offer]:
    """Yields what each priority offers first. They may be hundreds, so what follows is not read."""
    rise, wall_ms = aged_at.ageing.rise, aged_at.wall_ms
    for priority, fronts in ranks:
        first = _first(fronts, committed, payload_bytes_max)
        if first is not None:
            aged = priority + rise(wall_ms - first.waits_from_ms())
            yield -aged, first.order, -priority, first, fronts


def _first(fronts: Fronts, committed: int, payload_bytes_max: int | None) -> LaneItem | None:
    """Returns the first item of one priority that a consumer may have: the first of the heads, if
    it may have all of them.
    """
    first: LaneItem | None = None
    for lane in fronts:
        head = lane.head() if isinstance(lane, Lane) else None
        if head is None or head.offset > committed:
            break
        if payload_bytes_max is not None and head.payload_bytes_max() > payload_bytes_max:
            break
        if first is None or head.order < first.order:
            first = head
    else:
        return first
    return next(_in_order(fronts, committed, payload_bytes_max), None)


def _in_order(fronts: Fronts, committed: int, payload_bytes_max: int | None) -> _Items:
    """Yields the items of one priority that a consumer may have, in order."""
    streams = [lane.durable(committed, payload_bytes_max) for lane in fronts]
    return streams[0] if len(streams) == 1 else merge(*streams, key=_order)
