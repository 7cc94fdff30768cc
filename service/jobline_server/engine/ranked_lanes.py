"""Ranked lanes: many open lanes, by priority, so that the next job is found without a search."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import groupby, islice

from jobline_server.engine import limits
from jobline_server.engine.heads import LaneHeads
from jobline_server.engine.lane import Lane, LaneItem
from jobline_server.engine.ranks import NO_LANES, Names, OwnLanes, Rank, remove_ranked

# Up to this number of priorities all are walked, which is faster than finding those of a name.
RANKS_WALKED_MAX = 8

Fronts = Sequence[Lane | LaneHeads]
"""The lanes of one priority that a lease may read."""


class RankedLanes:
    """Open lanes in ranks. It has the methods of `OpenLanes`, which says what they do."""

    __slots__ = ("_order", "_order_of", "_ranks")

    def __init__(self) -> None:
        self._ranks: dict[int, Rank] = {}
        # Negated priorities of ranks, in order: all, and those of the lanes of each name.
        self._order: list[int] = []
        self._order_of: dict[str, list[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._ranks)

    def join(self, lane: Lane) -> None:
        """Adds a lane."""
        priority, name = lane.priority, lane.name
        rank = self._ranks.get(priority)
        if rank is None:
            rank = self._ranks[priority] = Rank()
            insort(self._order, -priority)
        if name not in rank:
            insort(self._order_of.setdefault(name, []), -priority)
        rank.add(lane)

    def leave(self, lane: Lane) -> None:
        """Removes a lane."""
        priority, name = lane.priority, lane.name
        rank = self._ranks[priority]
        rank.remove(lane)
        if name not in rank:
            order = self._order_of[name]
            remove_ranked(order, -priority)
            if not order:
                del self._order_of[name]
        if not rank:
            del self._ranks[priority]
            remove_ranked(self._order, -priority)

    def note_head(self, lane: Lane) -> None:
        """Updates what is known of a lane after an item was put before its head."""
        self._ranks[lane.priority].note_head(lane)

    def ranks(self, names: Names, size: int | None = None) -> Iterator[Iterator[Lane]]:
        """Yields the lanes of `names` and of sizes up to `size` (None: all) by priority, highest
        first. Lanes of one priority are unordered.
        """
        for negative in self._order_for(names):
            yield self._ranks[-negative].lanes(names, size)

    def fronts(
        self, names: Names, size: int | None, version: str | None = None, own: OwnLanes = NO_LANES
    ) -> Iterator[Fronts]:
        """Yields the same lanes for a lease of a worker of this version (None: any), with one
        `LaneHeads` in place of many lanes of one size, and with lanes of its `own`.
        """
        order = self._order_for(names)
        for negative in sorted({*order, *own}) if own else order:
            yield self._fronts_of(negative, names, size, version, own)

    def some_fronts(
        self,
        names: Names,
        size: int | None,
        version: str | None = None,
        own: OwnLanes = NO_LANES,
        *,
        seed: int,
    ) -> Iterator[tuple[int, Fronts]]:
        """Yields the same with their priorities, without empty ones. Of more than
        `AGED_PRIORITIES_MAX` one half are the highest, and `seed` chooses the others.
        """
        order = self._some_order(names, seed)
        ranks = self._ranks
        for negative in sorted({*order, *own}) if own else order:
            lane = ranks[-negative].only() if not own else None
            if lane is None:
                fronts = self._fronts_of(negative, names, size, version, own)
                if fronts:
                    yield -negative, fronts
            elif (names is None or lane.name in names) and (size is None or lane.size <= size):
                yield -negative, (lane,)

    def _some_order(self, names: Names, seed: int) -> list[int]:
        half = limits.AGED_PRIORITIES_MAX // 2
        order = list(islice(self._order_for(names), 2 * half + 1))
        if len(order) <= 2 * half:
            return order
        del order[half:]
        # Of all names: the others are skipped as they come.
        low = bisect_right(self._order, order[-1])
        left = len(self._order) - low
        first = low + seed % left
        wrapped = max(first + half - len(self._order), 0)
        return [*order, *self._order[low : low + wrapped], *self._order[first : first + half]]

    def _fronts_of(
        self, negative: int, names: Names, size: int | None, version: str | None, own: OwnLanes
    ) -> Fronts:
        rank, mine = self._ranks.get(-negative), own.get(negative)
        fronts = [] if rank is None else rank.fronts(names, size, version)
        return [*fronts, *mine] if mine else fronts

    def lanes_up_to(self, item: LaneItem, names: Names) -> Iterator[Lane]:
        """Yields the lanes of an item's priority that may have items before it."""
        rank = self._ranks.get(item.options.priority)
        return rank.lanes_up_to(item.order, names) if rank else iter(())

    def _order_for(self, names: Names) -> Iterable[int]:
        """Returns the negated priorities of the lanes of these names, highest priority first; all
        priorities if they are few.
        """
        if names is None or len(self._order) <= max(RANKS_WALKED_MAX, len(names)):
            return self._order
        found = [self._order_of[name] for name in names if name in self._order_of]
        return found[0] if len(found) == 1 else (rank for rank, _ in groupby(merge(*found)))
