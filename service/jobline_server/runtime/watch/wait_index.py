"""Finds the callers that wait for a job: up to ten thousand ids per caller, thousands of callers.

Nearly every job has one caller, which is the entry itself; a few callers are a tuple, and only many
are a set, because sets cost memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

# Up to this many callers of one job are kept in a tuple.
TUPLE_MAX = 8

Waiter = TypeVar("Waiter")


class WaitIndex(Generic[Waiter]):
    """Waiters by job."""

    __slots__ = ("_by_id",)

    def __init__(self) -> None:
        self._by_id: dict[int, Waiter | tuple[Waiter, ...] | set[Waiter]] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def add(self, ids: Iterable[int], waiter: Waiter) -> None:
        """Adds a waiter to these jobs."""
        by_id = self._by_id
        for job_id in ids:
            others = by_id.setdefault(job_id, waiter)
            if others is waiter:
                continue
            if isinstance(others, set):
                others.add(waiter)
                continue
            several = (*others, waiter) if isinstance(others, tuple) else (others, waiter)
            by_id[job_id] = several if len(several) <= TUPLE_MAX else set(several)

    def has(self, job_id: int, waiter: Waiter) -> bool:
        """Returns whether a waiter waits for a job."""
        return waiter in self._of(job_id)

    def take(self, job_id: int) -> Sequence[Waiter]:
        """Removes and returns the waiters of a job."""
        waiters = tuple(self._of(job_id))
        self._by_id.pop(job_id, None)
        return waiters

    def remove(self, ids: Iterable[int], waiter: Waiter) -> None:
        """Removes a waiter from these jobs."""
        by_id = self._by_id
        for job_id in ids:
            others = by_id.get(job_id)
            if others is waiter:
                del by_id[job_id]
            elif isinstance(others, set):
                others.discard(waiter)
                if len(others) <= TUPLE_MAX:
                    by_id[job_id] = tuple(others)
            elif isinstance(others, tuple):
                left = tuple([other for other in others if other is not waiter])
                by_id[job_id] = left if len(left) > 1 else left[0]

    def within(self, first_id: int, count: int) -> list[int]:
        """Returns the jobs of a run that have waiters. Iterates over the run or the table,
        whichever is shorter.
        """
        by_id, end = self._by_id, first_id + count
        if count <= len(by_id):
            return [job_id for job_id in range(first_id, end) if job_id in by_id]
        return [job_id for job_id in by_id if first_id <= job_id < end]

    def _of(self, job_id: int) -> Iterable[Waiter]:
        found = self._by_id.get(job_id)
        if found is None:
            return ()
        return found if isinstance(found, tuple | set) else (found,)
