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

    def add(self, ids: Iterable[int], jobs: int = 1) -> None:
        """Notes so many live jobs that may read the results of these."""
        parts = self._parts
        for job_id in ids:
            part = parts.get(job_id >> PART_BITS)
            if part is None:
                part = parts[job_id >> PART_BITS] = {}
            part[job_id] = part.get(job_id, 0) + jobs

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
        return any(self._in_parts(start, start + count) for start, count in runs)

    def within(self, first_id: int, count: int) -> list[int]:
        """Returns the wanted jobs of a run, in order."""
        return sorted(self._in_parts(first_id, first_id + count, every=True))

    def _in_parts(self, start: int, end: int, *, every: bool = False) -> list[int]:
        """Returns the wanted ids of the first part of the table that has any of these, or of
        `every` part, by a look at fewer ids or entries.
        """
        found: list[int] = []
        while start < end and (every or not found):
            part = self.part(start)
            part_end = min(end, ((start >> PART_BITS) + 1) << PART_BITS)
            if len(part) < part_end - start:
                found += [job_id for job_id in part if start <= job_id < part_end]
            else:
                found += part.keys() & range(start, part_end)
            start = part_end
        return found


def runs_without(
    starts: Iterable[int], counts: Iterable[int], taken: Iterable[int]
) -> tuple[list[int], list[int]]:
    """Returns runs of ids without some of them, which are in order."""
    first_ids: list[int] = []
    lengths: list[int] = []
    left = deque(taken)
    for first_id, count in zip(starts, counts, strict=True):
        start, end = first_id, first_id + count
        while left and start <= left[0] < end:
            if left[0] > start:
                first_ids.append(start)
                lengths.append(left[0] - start)
            start = left.popleft() + 1
        if end > start:
            first_ids.append(start)
            lengths.append(end - start)
    return first_ids, lengths
