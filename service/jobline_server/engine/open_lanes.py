"""Open lanes: those that jobs can be leased from, by priority. A lane is in here while it has READY
jobs and its gate is open.

Most queues have a few, and so have most of the tenants of a fair queue, of whom there may be a
million: they are a tuple in order, and become ranks (`ranked_lanes`) once there are more.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from jobline_server.engine.lane import Lane, LaneItem
from jobline_server.engine.ranked_lanes import Fronts, RankedLanes
from jobline_server.engine.ranks import NO_LANES, Names, OwnLanes, is_for

# Up to this number of lanes are no ranks, each of which has several tables.
FEW_MAX = 2


class OpenLanes:
    """The open lanes of a queue, or of one tenant of a fair queue."""

    __slots__ = ("_few", "_ranked")

    def __init__(self) -> None:
        # By priority, highest first; within one in the order in which they came.
        self._few: tuple[Lane, ...] = ()
        self._ranked: RankedLanes | None = None

    def join(self, lane: Lane) -> None:
        """Adds a lane."""
        if self._ranked is None:
            if len(self._few) < FEW_MAX:
                self._few = tuple(sorted([*self._few, lane], key=_rank_of))
                return
            self._ranked = RankedLanes()
            for one in self._few:
                self._ranked.join(one)
            self._few = ()
        self._ranked.join(lane)

    def leave(self, lane: Lane) -> None:
        """Removes a lane."""
        if self._ranked is None:
            at = self._few.index(lane)
            self._few = self._few[:at] + self._few[at + 1 :]
            return
        self._ranked.leave(lane)
        if not self._ranked:
            self._ranked = None

    def note_head(self, lane: Lane) -> None:
        """Updates what is known of a lane after an item was put before its head."""
        if self._ranked is not None:
            self._ranked.note_head(lane)

    def ranks(self, names: Names, size: int | None = None) -> Iterator[Iterator[Lane]]:
        """Yields the lanes of `names` and of sizes up to `size` (None: all) by priority, highest
        first. Lanes of one priority are unordered.
        """
        if self._ranked is not None:
            return self._ranked.ranks(names, size)
        return (lanes for _, lanes in groupby(self._chosen(names, size, None), _rank_of))

    def fronts(
        self, names: Names, size: int | None, version: str | None = None, own: OwnLanes = NO_LANES
    ) -> Iterator[Fronts]:
        """Yields the same lanes for a lease of a worker of this version (None: any), with one
        `LaneHeads` in place of many lanes of one size, and with lanes of its `own`.
        """
        if self._ranked is not None:
            return self._ranked.fronts(names, size, version, own)
        return (fronts for _, fronts in self._fronts(names, size, version, own))

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
        if self._ranked is not None:
            return self._ranked.some_fronts(names, size, version, own, seed=seed)
        return self._fronts(names, size, version, own)

    def _fronts(
        self, names: Names, size: int | None, version: str | None, own: OwnLanes
    ) -> Iterator[tuple[int, Fronts]]:
        chosen = self._chosen(names, size, version)
        if own:
            chosen += [lane for lanes in own.values() for lane in lanes]
            chosen.sort(key=_rank_of)
        return ((-negative, list(lanes)) for negative, lanes in groupby(chosen, _rank_of))

    def lanes_up_to(self, item: LaneItem, names: Names) -> Iterator[Lane]:
        """Yields the lanes of an item's priority that may have items before it."""
        if self._ranked is not None:
            return self._ranked.lanes_up_to(item, names)
        priority = item.options.priority
        return (lane for lane in self._chosen(names, None, None) if lane.priority == priority)

    def _chosen(self, names: Names, size: int | None, version: str | None) -> list[Lane]:
        return [
            lane
            for lane in self._few
            if (names is None or lane.name in names)
            and (size is None or lane.size <= size)
            and is_for(lane, version)
        ]


def _rank_of(lane: Lane) -> int:
    return -lane.priority
