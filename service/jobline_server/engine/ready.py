"""READY jobs of a queue by priority and by name, so that nobody has to add up its lanes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from typing import TypeVar

from jobline_server.engine.lane import Lane

Key = TypeVar("Key", str, int)


class ReadyCounts:
    """Counts of what has any; those of lanes with a closed gate are among them."""

    __slots__ = ("_by_name", "_by_priority", "_priorities")

    def __init__(self) -> None:
        self._by_name: dict[str, int] = {}
        self._by_priority: dict[int, int] = {}
        # Negated, in order.
        self._priorities: list[int] = []

    def add(self, lane: Lane, jobs: int) -> None:
        """Counts jobs of a lane in, or out if `jobs` is below zero."""
        _add(self._by_name, lane.name, jobs)
        if jobs:
            self._add_to_priority(lane.priority, jobs)

    def add_all(self, before: Mapping[Lane, int]) -> int:
        """Counts what lanes have in place of what they had before; returns the difference."""
        by_name = self._by_name
        by_priority: dict[int, int] = {}
        for lane, had in before.items():
            jobs = lane.ready - had
            _add(by_name, lane.name, jobs)
            by_priority[lane.priority] = by_priority.get(lane.priority, 0) + jobs
        for priority, jobs in by_priority.items():
            if jobs:
                self._add_to_priority(priority, jobs)
        return sum(by_priority.values())

    def _add_to_priority(self, priority: int, jobs: int) -> None:
        left = _add(self._by_priority, priority, jobs)
        if left == jobs:
            insort(self._priorities, -priority)
        elif not left:
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


def _add(counts: dict[Key, int], key: Key, jobs: int) -> int:
    """Adds to a count that is there while it is not 0; returns what it is now."""
    left = counts.get(key, 0) + jobs
    if left:
        counts[key] = left
    else:
        counts.pop(key, None)
    return left
