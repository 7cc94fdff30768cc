"""Delayed jobs and lots by the time at which they become READY.

An entry whose job stops waiting earlier (cancelled, deleted, promoted) becomes obsolete: it is not
searched for, but skipped at its time. As that may be in a year, obsolete entries are also swept. A
sweep takes the last entry of one heap, which leaves a heap, and pushes it on the other if it is
still valid. No single step walks over everything, and obsolete entries are never many more than
valid ones. The caller knows which are valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush

Entry = tuple[int, int]
"""The wall time, and the id of a job or the first id of a lot."""

# Entries examined per entry that may be obsolete. With two, a sweep of n entries ends when n / 2
# more have become obsolete: only those and the valid ones are left then.
SWEPT_EACH = 2


class Delayed:
    """Entries by time. An entry may occur twice."""

    __slots__ = ("_heap", "_unswept")

    def __init__(self) -> None:
        self._heap: list[Entry] = []
        self._unswept: list[Entry] = []

    def __len__(self) -> int:
        return len(self._heap) + len(self._unswept)

    def __iter__(self) -> Iterator[Entry]:
        """Iterates over all entries, unordered."""
        yield from self._heap
        yield from self._unswept

    def add(self, run_at_ms: int, first_id: int) -> None:
        """Adds an entry for a job or lot."""
        heappush(self._heap, (run_at_ms, first_id))

    def first_ms(self) -> int | None:
        """Returns the time of the next entry; None without any."""
        first = self._first()
        return first[0][0] if first else None

    def pop_due(self, wall_ms: int) -> Entry | None:
        """Removes and returns the next due entry, in order of time and id; None without any."""
        first = self._first()
        return heappop(first) if first and first[0][0] <= wall_ms else None

    def sweep(self, count: int, waits: Callable[[int, int], bool]) -> None:
        """Sweeps part of the heap, as up to `count` entries may have become obsolete; `waits`
        returns whether an entry is valid.
        """
        for _ in range(min(SWEPT_EACH * count, 2 * len(self))):
            if not self._unswept:
                self._unswept, self._heap = self._heap, self._unswept
            if not self._unswept:
                return
            entry = self._unswept.pop()
            if waits(*entry):
                heappush(self._heap, entry)

    def _first(self) -> list[Entry]:
        """Returns the heap that the next entry is on."""
        heap, unswept = self._heap, self._unswept
        if heap and unswept:
            return heap if heap[0] <= unswept[0] else unswept
        return heap or unswept
