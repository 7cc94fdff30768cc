"""What waits for its time: jobs and lots by the moment at which they become ready.

What stops waiting earlier (cancelled, deleted, promoted) is not searched for: it stays where it is,
and is skipped when its time comes. That may be in a year, so it is swept away by and by. A sweep
goes round: it takes the last entry of one heap, which leaves a heap, and puts it on the other if it
still waits. No single step walks over everything, and what does not wait any more is never much
more than what does.

Who waits is not known here: the shard says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush

Entry = tuple[int, int]
"""When, in wall time, and the id of a job or the first id of a lot."""

# Entries looked at for each that may not wait any more. With two of them a round over n entries is
# over when n / 2 more have stopped waiting: those, and what waits, are all that is left then.
SWEPT_EACH = 2


class Delayed:
    """Entries by time. An entry may be there twice."""

    __slots__ = ("_heap", "_unswept")

    def __init__(self) -> None:
        self._heap: list[Entry] = []
        self._unswept: list[Entry] = []

    def __len__(self) -> int:
        return len(self._heap) + len(self._unswept)

    def __iter__(self) -> Iterator[Entry]:
        """In no order."""
        yield from self._heap
        yield from self._unswept

    def add(self, run_at_ms: int, first_id: int) -> None:
        """Has a job or a lot come up at its time."""
        heappush(self._heap, (run_at_ms, first_id))

    def first_ms(self) -> int | None:
        """When the next entry comes up; None without any."""
        first = self._first()
        return first[0][0] if first else None

    def pop_due(self, wall_ms: int) -> Entry | None:
        """Takes out the next entry whose time has come, in order of time and id."""
        first = self._first()
        return heappop(first) if first and first[0][0] <= wall_ms else None

    def sweep(self, count: int, waits: Callable[[int, int], bool]) -> None:
        """So many entries may not wait any more: throws away some that do not, those or others."""
        for _ in range(min(SWEPT_EACH * count, 2 * len(self))):
            if not self._unswept:
                self._unswept, self._heap = self._heap, self._unswept
            if not self._unswept:
                return
            entry = self._unswept.pop()
            if waits(*entry):
                heappush(self._heap, entry)

    def _first(self) -> list[Entry]:
        """The heap that the next entry is on."""
        heap, unswept = self._heap, self._unswept
        if heap and unswept:
            return heap if heap[0] <= unswept[0] else unswept
        return heap or unswept
