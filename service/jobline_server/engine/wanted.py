"""Wanted jobs: those that live jobs were pushed to wait for, and whose results these may read.

A job reads the results of its parents when it runs, perhaps several times. So retention keeps what
completed among them until the last of those jobs has ended. The table follows from the live jobs of
all shards: it is not stored, and complete when all shards are loaded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from jobline_server.engine.tables import PART_BITS, IdTable

# A job with more parents than this lets go of them later, in steps: a thousand jobs with a thousand
# parents each may be acked in one call, and to let go of these takes a sixth of a second.
FEW = 16


class Wanted(IdTable[int]):
    """How many live jobs may read the result of each job, by id."""

    __slots__ = ("_over", "_rest")

    def __init__(self) -> None:
        super().__init__()
        # Of jobs that are over: what they wanted still counts.
        self._over: deque[Sequence[int]] = deque()
        self._rest: Iterator[int] = iter(())

    def add(self, ids: Iterable[int]) -> None:
        """Notes a live job that may read the results of these."""
        for job_id in ids:
            self[job_id] = (self.find(job_id) or 0) + 1

    def remove(self, ids: Sequence[int]) -> None:
        """Notes that such a job is over; more than `FEW` ids count until they are swept. Ids that
        nobody noted are left out: a shard that is served no more counts nowhere.
        """
        if len(ids) > FEW:
            self._over.append(ids)
        else:
            self._let_go(ids)

    def sweep(self, limit: int) -> bool:
        """Lets go of up to `limit` ids of jobs that are over; returns whether more are left."""
        while limit > 0:
            swept = list(islice(self._rest, limit))
            self._let_go(swept)
            limit -= len(swept)
            if not swept:
                if not self._over:
                    return False
                self._rest = iter(self._over.popleft())
        return True

    def _let_go(self, ids: Iterable[int]) -> None:
        for job_id in ids:
            count = self.find(job_id)
            if count is None:
                continue
            if count > 1:
                self[job_id] = count - 1
            else:
                del self[job_id]

    def has_any(self, runs: Iterable[tuple[int, int]]) -> bool:
        """Returns whether any job of these runs (first id, count) is wanted."""
        return any(self._is_any_in(start, start + count) for start, count in runs)

    def without(self, first_id: int, count: int) -> Iterator[tuple[int, int]]:
        """Yields the jobs of a run that are not wanted, as runs."""
        start = first_id
        for job_id in range(first_id, first_id + count):
            if job_id in self:
                if job_id > start:
                    yield start, job_id - start
                start = job_id + 1
        if first_id + count > start:
            yield start, first_id + count - start

    def _is_any_in(self, start: int, end: int) -> bool:
        """Returns whether any of these ids is wanted, by a look at fewer ids or entries."""
        while start < end:
            part = self.part(start)
            part_end = min(end, ((start >> PART_BITS) + 1) << PART_BITS)
            if len(part) < part_end - start:
                if any(start <= job_id < part_end for job_id in part):
                    return True
            elif not part.keys().isdisjoint(range(start, part_end)):
                return True
            start = part_end
        return False
