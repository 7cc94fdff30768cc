"""Ranks: the lanes of one priority that jobs can be leased from.

A lane is in its rank while it has READY jobs and its gate is open; a lease examines no other lanes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from jobline_server.engine.heads import LaneHeads
from jobline_server.engine.lane import Lane
from jobline_server.engine.rules import Needs
from jobline_server.engine.versions import is_new_enough

# Up to this number of lanes are merged without a heap.
LANES_MERGED_MAX = 64
# Heaps that a rank keeps, one per set of names: those of the last consumers. Building one costs
# about as much as a merge.
HEADS_MAX = 8
# Obsolete entries allowed in a heap, beyond one per lane.
HEADS_SPARE = 1_024

V = TypeVar("V")

Names = frozenset[str] | None
"""The names that a consumer handles; None: all."""
OwnLanes = Mapping[int, Sequence[Lane]]
"""The lanes that are reserved for one session, by negated priority."""
NO_LANES: OwnLanes = {}


class SizeLanes:
    """Lanes of one size by name, unordered: those without needs, and the few others by their needs
    as well.
    """

    __slots__ = ("_count", "_needing", "_plain", "versioned")

    def __init__(self) -> None:
        self._plain: dict[str, Lane] = {}
        self._needing: dict[str, dict[Needs, Lane]] = {}
        self._count = 0
        # The number of lanes for workers of some version.
        self.versioned = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, name: str) -> bool:
        return name in self._plain or name in self._needing

    def add(self, lane: Lane) -> None:
        """Adds a lane."""
        self._count += 1
        if lane.needs is None:
            self._plain[lane.name] = lane
        else:
            self._needing.setdefault(lane.name, {})[lane.needs] = lane
            self.versioned += bool(lane.needs.min_worker_version)

    def remove(self, lane: Lane) -> None:
        """Removes a lane."""
        self._count -= 1
        if lane.needs is None:
            del self._plain[lane.name]
            return
        self.versioned -= bool(lane.needs.min_worker_version)
        of_name = self._needing[lane.name]
        del of_name[lane.needs]
        if not of_name:
            del self._needing[lane.name]

    def only(self) -> Lane | None:
        """Returns its lane if it has just one, without needs."""
        return next(iter(self._plain.values()), None) if self._count == 1 else None

    def most_named(self, names: frozenset[str]) -> int:
        """Returns an upper bound of the number of lanes of `names`."""
        return len(names) if not self._needing else len(names) + self._count - len(self._plain)

    def named(self, names: Names, version: str | None = None) -> Iterator[Lane]:
        """Yields the lanes of `names` for a worker of this version (None: any)."""
        yield from _named(self._plain, names)
        if self._needing:
            for of_name in _named(self._needing, names):
                for lane in of_name.values():
                    if is_for(lane, version):
                        yield lane


class Rank:
    """The lanes of one priority by size, name and needs, unordered."""

    __slots__ = ("_by_size", "_heads", "_only")

    def __init__(self) -> None:
        # Its lane, while it is known to have just one, without needs.
        self._only: Lane | None = None
        self._by_size: dict[int, SizeLanes] = {}
        # By size, names and version; the heap that was used last is at the end.
        self._heads: dict[tuple[int, Names, str | None], LaneHeads] = {}

    def __bool__(self) -> bool:
        return bool(self._by_size)

    def __contains__(self, name: str) -> bool:
        for lanes in self._by_size.values():  # noqa: SIM110  # a generator costs more
            if name in lanes:
                return True
        return False

    def add(self, lane: Lane) -> None:
        """Adds a lane that has READY jobs and whose gate is open."""
        self._only = None
        lanes = self._by_size.get(lane.size)
        if lanes is None:
            lanes = self._by_size[lane.size] = SizeLanes()
        lanes.add(lane)
        if self._heads:
            self.note_head(lane)

    def remove(self, lane: Lane) -> None:
        """Removes a lane that has no READY jobs any more, or whose gate was closed."""
        self._only = None
        lanes = self._by_size[lane.size]
        lanes.remove(lane)
        if not lanes:
            del self._by_size[lane.size]
            if self._heads:
                kept = {key: heads for key, heads in self._heads.items() if key[0] != lane.size}
                self._heads = kept

    def note_head(self, lane: Lane) -> None:
        """Updates the heaps after an item was put before the head of a lane."""
        too_long: list[tuple[int, Names, str | None]] = []
        for key, heads in self._heads.items():
            size, names, version = key
            is_named = names is None or lane.name in names
            if size == lane.size and is_named and is_for(lane, version):
                heads.note(lane)
                if len(heads) > 2 * len(self._by_size[size]) + HEADS_SPARE:
                    too_long.append(key)
        for key in too_long:
            # `_heads_of` builds it anew when it is needed.
            del self._heads[key]

    def lanes(self, names: Names, size: int | None) -> Iterator[Lane]:
        """Yields the lanes of `names` and of sizes up to `size` (None: all)."""
        for lane_size, lanes in self._by_size.items():
            if size is None or lane_size <= size:
                yield from lanes.named(names)

    def only(self) -> Lane | None:
        """Returns its lane if it has just one, without needs, which need not be chosen."""
        if self._only is None and len(self._by_size) == 1:
            for lanes in self._by_size.values():
                self._only = lanes.only()
        return self._only

    def fronts(
        self, names: Names, size: int | None, version: str | None = None
    ) -> list[Lane | LaneHeads]:
        """Returns the same lanes for a worker of this version (None: any), but one `LaneHeads` in
        place of more than `LANES_MERGED_MAX` of one size.
        """
        fronts: list[Lane | LaneHeads] = []
        for lane_size, lanes in self._by_size.items():
            if size is not None and lane_size > size:
                continue
            wanted = version if lanes.versioned else None
            if len(lanes) <= LANES_MERGED_MAX or (
                names is not None and lanes.most_named(names) <= LANES_MERGED_MAX
            ):
                fronts += lanes.named(names, wanted)
            else:
                fronts.append(self._heads_of(lane_size, names, wanted))
        return fronts

    def lanes_up_to(self, order: int, names: Names) -> Iterator[Lane]:
        """Yields the lanes of `names` that may have an item of at most this order."""
        for front in self.fronts(names, None):
            if isinstance(front, Lane):
                yield front
            else:
                yield from front.lanes_up_to(order)

    def _heads_of(self, size: int, names: Names, version: str | None) -> LaneHeads:
        key = size, names, version
        heads = self._heads.pop(key, None)
        if heads is None:
            heads = LaneHeads(self._by_size[size].named(names, version))
            if len(self._heads) >= HEADS_MAX:
                del self._heads[next(iter(self._heads))]
        self._heads[key] = heads
        return heads


def is_for(lane: Lane, version: str | None) -> bool:
    """Returns whether a worker of this version (None: any) may have the jobs of a lane."""
    if version is None or lane.needs is None:
        return True
    return is_new_enough(version, lane.needs.min_worker_version)


def _named(found: dict[str, V], names: Names) -> Iterator[V]:
    if names is None:
        yield from found.values()
    elif len(names) < len(found):
        yield from [found[name] for name in names if name in found]
    else:
        yield from [value for name, value in found.items() if name in names]


def remove_ranked(order: list[int], negative: int) -> None:
    """Removes a negated priority from those of some lanes, in order."""
    del order[bisect_left(order, negative)]
