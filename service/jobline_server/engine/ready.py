"""READY jobs of a queue by priority and by name, so that nobody has to add up its lanes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping

from jobline_server.engine.lane import Lane


class ReadyCounts:
    """Counts of what has any; those of lanes with a closed gate are among them."""

    __slots__ = ("_by_name", "_by_priority", "_priorities")

    def __init__(self) -> None:
        self._by_name: dict[str, int] = {}
        self._by_priority: dict[int, int] = {}
        # Negated, in order.
        self._priorities: list[int] = []

    def add(self, jobs_by_lane: Mapping[Lane, int]) -> int:
        """Counts jobs of lanes in, or out where they are below zero; returns how many that are."""
        by_name, by_priority = (
            self._by_name,
            dict.fromkeys([lane.priority for lane in jobs_by_lane], 0),
        )
        for lane, jobs in jobs_by_lane.items():
            name = lane.name
            left = by_name.get(name, 0) + jobs
            if left:
                by_name[name] = left
            else:
                del by_name[name]
            by_priority[lane.priority] += jobs
        for priority, jobs in by_priority.items():
            self._add_to_priority(priority, jobs)
        return sum(by_priority.values())

    def _add_to_priority(self, priority: int, jobs: int) -> None:
        left = self._by_priority.get(priority, 0) + jobs
        if left == jobs:
            insort(self._priorities, -priority)
        if left:
            self._by_priority[priority] = left
        else:
            del self._by_priority[priority]
            del self._priorities[bisect_left(self._priorities, -priority)]

    def priorities(self) -> Iterator[tuple[int, int]]:
        """Yields each priority with its jobs, highest first."""
        for negative in self._priorities:
            yield -negative, self._by_priority[-negative]

    def of_names(self, names: frozenset[str]) -> int:
        """Returns how many jobs have one of these names."""
        by_name = self._by_name
        if len(names) <= len(by_name):
            return sum([by_name.get(name, 0) for name in names])
        return sum([jobs for name, jobs in by_name.items() if name in names])

    def names(self) -> Iterator[tuple[str, int]]:
        """Yields each name with its jobs."""
        yield from self._by_name.items()
