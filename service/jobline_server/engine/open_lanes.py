"""Open lanes: those that jobs can be leased from, by priority, so that the next job is found
without a search. A lane is in here while it has READY jobs and its gate is open.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import groupby

from jobline_server.engine.heads import LaneHeads
from jobline_server.engine.lane import Lane, LaneItem
from jobline_server.engine.ranks import NO_LANES, Names, OwnLanes, Rank, remove_ranked

# Up to this number of priorities all are walked, which is faster than finding those of a name.
RANKS_WALKED_MAX = 8


class OpenLanes:
    """The open lanes of a queue, or of one tenant of a fair queue."""

    __slots__ = ("_order", "_order_of", "_ranks")

    def __init__(self) -> None:
        self._ranks: dict[int, Rank] = {}
        # Negated priorities of ranks, in order: all, and those of the lanes of each name.
        self._order: list[int] = []
        self._order_of: dict[str, list[int]] = {}

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
    ) -> Iterator[Sequence[Lane | LaneHeads]]:
        """Yields the same lanes for a lease of a worker of this version (None: any), with one
        `LaneHeads` in place of many lanes of one size, and with lanes of its `own`.
        """
        order = self._order_for(names)
        for negative in sorted({*order, *own}) if own else order:
            rank, mine = self._ranks.get(-negative), own.get(negative)
            fronts = [] if rank is None else rank.fronts(names, size, version)
            yield [*fronts, *mine] if mine else fronts

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
