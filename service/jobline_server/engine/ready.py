"""Counts of a queue's READY jobs by priority and by name, so that no call adds up its lanes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, KeysView, Mapping
from typing import TypeVar

from jobline_server.engine.lane import Lane
from jobline_server.engine.values import JobOptions

Key = TypeVar("Key", str, int)


class ReadyCounts:
    """The counts that are not 0; they include the jobs of lanes with a closed gate."""

    __slots__ = ("_by_name", "_by_priority", "_priorities")

    def __init__(self) -> None:
        self._by_name: dict[str, int] = {}
        self._by_priority: dict[int, int] = {}
        # Negated, in order.
        self._priorities: list[int] = []

    def add(self, lane: Lane | JobOptions, jobs: int) -> None:
        """Adds `jobs`, which may be negative, to the counts of a lane, or of jobs in no lane."""
        _add(self._by_name, lane.name, jobs)
        if jobs:
            self._add_to_priority(lane.priority, jobs)

    def add_all(self, before: Mapping[Lane, int]) -> int:
        """Updates the counts of lanes, given their `ready` of before; returns the difference."""
        by_name = self._by_name
        by_priority: dict[int, int] = {}
        for lane, ready_before in before.items():
            jobs = lane.ready - ready_before
            _add(by_name, lane.name, jobs)
            by_priority[lane.priority] = by_priority.get(lane.priority, 0) + jobs
        for priority, jobs in by_priority.items():
            if jobs:
                self._add_to_priority(priority, jobs)
        return sum(by_priority.values())

    def _add_to_priority(self, priority: int, jobs: int) -> None:
        count = _add(self._by_priority, priority, jobs)
        if count == jobs:
            insort(self._priorities, -priority)
        elif not count:
            del self._priorities[bisect_left(self._priorities, -priority)]

    def priorities(self) -> Iterator[tuple[int, int]]:
        """Yields each priority with its number of jobs, highest first."""
        for negative in self._priorities:
            yield -negative, self._by_priority[-negative]

    def of_names(self, names: frozenset[str]) -> int:
        """Returns how many jobs have one of these names."""
        by_name = self._by_name
        if len(names) <= len(by_name):
            return sum([by_name.get(name, 0) for name in names])
        return sum([jobs for name, jobs in by_name.items() if name in names])

    def named(self) -> KeysView[str]:
        """Returns a view of the names."""
        return self._by_name.keys()

    def names(self) -> Iterator[tuple[str, int]]:
        """Yields each name with its number of jobs."""
        yield from self._by_name.items()


def _add(counts: dict[Key, int], key: Key, jobs: int) -> int:
    """Adds to a count and returns the sum; a count of 0 is removed."""
    count = counts.get(key, 0) + jobs
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)
    return count
