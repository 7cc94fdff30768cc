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

from jobline_server.engine import limits

Entry = tuple[int, int]
"""The wall time, and the id of a job or the first id of a lot."""

# A heap holds an entry as one number, time and id: a million are taken off in a third of the time
# that tuples need, and in half the memory.
_ID_MASK = (1 << limits.ID_BITS) - 1

# Entries examined per entry that may be obsolete. With two, a sweep of n entries ends when n / 2
# more have become obsolete: only those and the valid ones are left then.
SWEPT_EACH = 2

# Overdue entries are gathered from moments that are no further apart, and no more of them: to sort
# these, in any order, takes ten milliseconds. Twice a slice is gathered while one is taken.
STRETCH_MS = 100
GATHERED_MAX = 50_000
GATHERED_EACH = 2

# A gathered entry is one number too, id and time.
_TIME_BITS = 50
_TIME_MASK = (1 << _TIME_BITS) - 1


class Delayed:
    """Entries by time. An entry may occur twice."""

    __slots__ = ("_heap", "_unswept")

    def __init__(self) -> None:
        self._heap: list[int] = []
        self._unswept: list[int] = []

    def __len__(self) -> int:
        return len(self._heap) + len(self._unswept)

    def __iter__(self) -> Iterator[Entry]:
        """Iterates over all entries, unordered."""
        yield from map(_entry, self._heap)
        yield from map(_entry, self._unswept)

    def add(self, run_at_ms: int, first_id: int) -> None:
        """Adds an entry for a job or lot."""
        heappush(self._heap, run_at_ms << limits.ID_BITS | first_id)

    def first_ms(self) -> int | None:
        """Returns the time of the next entry; None without any."""
        first = self._first()
        return first[0] >> limits.ID_BITS if first else None

    def pop_due(self, wall_ms: int) -> Entry | None:
        """Removes and returns the next due entry, in order of time and id; None without any."""
        due = self.pop_many_due(wall_ms, 1)
        return due[0] if due else None

    def pop_many_due(self, wall_ms: int, count: int) -> list[Entry]:
        """Removes and returns up to `count` due entries, in order of time and id."""
        return list(map(_entry, self._pop_numbers(wall_ms, count)))

    def _pop_numbers(self, wall_ms: int, count: int) -> list[int]:
        due: list[int] = []
        end = (wall_ms + 1) << limits.ID_BITS
        unswept, first = self._unswept, self._first()
        while first and len(due) < count and first[0] < end:
            due.append(heappop(first))
            if unswept or not first:
                first = self._first()
        return due

    def sweep(self, count: int, waits: Callable[[int, int], bool]) -> None:
        """Sweeps part of the heap, as up to `count` entries may have become obsolete; `waits`
        returns whether an entry is valid.
        """
        for _ in range(min(SWEPT_EACH * count, 2 * len(self))):
            if not self._unswept:
                self._unswept, self._heap = self._heap, self._unswept
            if not self._unswept:
                return
            number = self._unswept.pop()
            if waits(*_entry(number)):
                heappush(self._heap, number)

    def _first(self) -> list[int]:
        """Returns the heap that the next entry is on."""
        heap, unswept = self._heap, self._unswept
        if heap and unswept:
            return heap if heap[0] <= unswept[0] else unswept
        return heap or unswept


class DelayedJobs(Delayed):
    """Entries of which many may be due at once: those of jobs, and of lots of them.

    Jobs lie in memory in the order of their pushes. A million that each become due at a time of its
    own, in another order, would be looked at in as many places, then again to lease them, and again
    as they are acked: that takes twice the time of all else. So while more are due than a slice,
    they are gathered, and taken in the order of their pushes within a tenth of a second.
    """

    __slots__ = ("_gathered", "_gathered_ms", "_overdue")

    def __init__(self) -> None:
        super().__init__()
        # In order of time and id; sorted by id, the next one last.
        self._gathered: list[int] = []
        self._overdue: list[int] = []
        # A time at which all of them were due.
        self._gathered_ms = 0

    def __len__(self) -> int:
        return super().__len__() + len(self._gathered) + len(self._overdue)

    def __iter__(self) -> Iterator[Entry]:
        """Iterates over all entries, unordered."""
        yield from super().__iter__()
        yield from map(_gathered_entry, self._gathered)
        yield from map(_gathered_entry, self._overdue)

    def first_ms(self) -> int | None:
        """Returns the time of the next entry; None without any."""
        if self._overdue:
            return self._overdue[-1] & _TIME_MASK
        if self._gathered:
            return self._gathered[0] & _TIME_MASK
        # Each call of a client asks for it.
        first = self._first()
        return first[0] >> limits.ID_BITS if first else None

    def pop_many_due(self, wall_ms: int, count: int) -> list[Entry]:
        """Removes and returns up to `count` due entries: in order of time and id, if no more are
        due. Of more, these are followed by gathered ones in order of id.
        """
        if wall_ms < self._gathered_ms:
            self._put_back()
        if not self._overdue and self._gathered:
            self._gathered.sort(reverse=True)
            self._overdue, self._gathered = self._gathered, []
        if self._overdue:
            due = list(map(_gathered_entry, self._overdue[: -count - 1 : -1]))
            del self._overdue[-count:]
        else:
            due = super().pop_many_due(wall_ms, count)
        self._gather(wall_ms, GATHERED_EACH * count)
        return due

    def _gather(self, wall_ms: int, count: int) -> None:
        gathered = self._gathered
        first_ms = gathered[0] & _TIME_MASK if gathered else super().first_ms()
        self._gathered_ms = wall_ms
        if first_ms is not None:
            end_ms = min(wall_ms, first_ms + STRETCH_MS)
            numbers = self._pop_numbers(end_ms, min(count, GATHERED_MAX - len(gathered)))
            gathered += [
                (number & _ID_MASK) << _TIME_BITS | number >> limits.ID_BITS for number in numbers
            ]

    def _put_back(self) -> None:
        """Lets go of what was gathered: the clock was set back, and it is not due any more."""
        for run_at_ms, first_id in map(_gathered_entry, [*self._gathered, *self._overdue]):
            self.add(run_at_ms, first_id)
        self._gathered, self._overdue = [], []


def _entry(number: int) -> Entry:
    return number >> limits.ID_BITS, number & _ID_MASK


def _gathered_entry(number: int) -> Entry:
    return number & _TIME_MASK, number >> _TIME_BITS
