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
class _Batch(Generic[J]):
    size: int
    wait: float
    jobs: list[J] = field(default_factory=list)
    due_at: float = 0.0


class JobBatches(Generic[K, J]):
    """Collects jobs per batch handler until a batch is full or due."""

    def __init__(self) -> None:
        self._batches: dict[K, _Batch[J]] = {}

    def add(self, now: float, key: K, job: J, *, size: int, wait: float) -> list[J] | None:
        """Adds a job; returns the batch that it completes, if any."""
        batch = self._batches.get(key)
        if batch is None:
            batch = self._batches[key] = _Batch(size, wait)
        if not batch.jobs:
            batch.due_at = now + batch.wait
        batch.jobs.append(job)
        return self._take(batch) if len(batch.jobs) >= batch.size else None

    def due(self, now: float) -> list[tuple[K, list[J]]]:
        """Removes and returns the batches whose first job has waited long enough."""
        return [
            (key, self._take(batch))
            for key, batch in self._batches.items()
            if batch.jobs and batch.due_at <= now
        ]

    def next_deadline(self) -> float | None:
        """Returns when the next batch is due."""
        return min((batch.due_at for batch in self._batches.values() if batch.jobs), default=None)

    def clear(self) -> None:
        """Drops all jobs; the session knows which leases are held."""
        self._batches.clear()

    @staticmethod
    def _take(batch: _Batch[J]) -> list[J]:
        jobs, batch.jobs = batch.jobs, []
        return jobs
