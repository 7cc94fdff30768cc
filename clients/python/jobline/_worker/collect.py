"""Jobs of batch handlers, gathered until there are enough or the first has waited long enough.
Pure.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
J = TypeVar("J")


@dataclass(slots=True)
class _Heap(Generic[J]):
    size: int
    wait: float
    jobs: list[J] = field(default_factory=list)
    due_at: float = 0.0


class Collector(Generic[K, J]):
    """One heap of jobs a batch handler."""

    def __init__(self) -> None:
        self._heaps: dict[K, _Heap[J]] = {}

    def add(self, now: float, key: K, job: J, *, size: int, wait: float) -> list[J] | None:
        """Takes a job; returns the batch that it completes, if it does."""
        heap = self._heaps.get(key)
        if heap is None:
            heap = self._heaps[key] = _Heap(size, wait)
        if not heap.jobs:
            heap.due_at = now + heap.wait
        heap.jobs.append(job)
        return self._take(heap) if len(heap.jobs) >= heap.size else None

    def due(self, now: float) -> list[tuple[K, list[J]]]:
        """The batches whose first job has waited long enough."""
        return [
            (key, self._take(heap))
            for key, heap in self._heaps.items()
            if heap.jobs and heap.due_at <= now
        ]

    def next_deadline(self) -> float | None:
        """When `due` has something."""
        return min((heap.due_at for heap in self._heaps.values() if heap.jobs), default=None)

    def clear(self) -> None:
        """Forgets everything; the session knows what is held."""
        self._heaps.clear()

    @staticmethod
    def _take(heap: _Heap[J]) -> list[J]:
        jobs, heap.jobs = heap.jobs, []
        return jobs
