"""Lease lookup: finds the expired leases of one holder, a slice at a time.

Each lease is examined once, and each job of an expired run is found once, however many slices it
takes. Changes between two slices count: a lease that was settled is skipped, and a worker that was
seen keeps the leases not examined yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Job
from jobline_server.engine.lot import RunLease

Lost = tuple[RunLease | Job, int]
"""An expired lease of a job, and the job's id."""


class LeaseLookup:
    """One pass over a holder's leases. `earliest_ms` is the earliest end of the examined leases
    that have not expired; None without any.
    """

    __slots__ = ("_ended", "_index", "_keys", "_run", "earliest_ms", "examined", "holder")

    def __init__(self, holder: Holder) -> None:
        self.holder = holder
        self.earliest_ms: int | None = None
        self.examined = 0
        """The number of leases and jobs of runs examined in all."""
        self._keys: Iterator[int] = iter(list(holder.leases))
        self._run: RunLease | None = None
        self._index = 0
        self._ended: list[RunLease] = []

    def take(self, mono_ms: int, *, lost_max: int, examined_max: int) -> tuple[list[Lost], bool]:
        """Examines up to `examined_max` leases; returns up to `lost_max` expired ones, and whether
        the lookup is complete.
        """
        lost: list[Lost] = []
        stop_at = self.examined + examined_max
        while len(lost) < lost_max and self.examined < stop_at:
            if self._run is not None:
                limit = min(lost_max - len(lost), stop_at - self.examined)
                lost += self._take_of_run(self._run, mono_ms, limit)
                continue
            key = next(self._keys, None)
            if key is None:
                return lost, True
            self.examined += 1
            lease = cast("RunLease | Job | None", self.holder.leases.get(key))
            if lease is None or self._is_left(lease, mono_ms):
                continue
            if isinstance(lease, Job):
                lost.append((lease, lease.id))
            else:
                self._run, self._index = lease, lease.start
        return lost, False

    def fold(self) -> None:
        """Notes the ends of the jobs that are left of completely examined runs. Call it after the
        leases that `take` returned were ended.
        """
        for run in self._ended:
            if run.remaining:
                run.fold()
                self._note(self.holder.deadline_of(run))
        self._ended = []

    def _note(self, ends_ms: int) -> None:
        if self.earliest_ms is None or ends_ms < self.earliest_ms:
            self.earliest_ms = ends_ms

    def _is_left(self, lease: RunLease | Job, mono_ms: int) -> bool:
        ends_ms = self.holder.deadline_of(lease)
        if ends_ms <= mono_ms:
            return False
        self._note(ends_ms)
        return True

    def _take_of_run(self, run: RunLease, mono_ms: int, limit: int) -> list[Lost]:
        """Returns the expired jobs among the next `limit` of a run; some may have been extended."""
        lost: list[Lost] = []
        self._run = None
        if run.remaining and not self._is_left(run, mono_ms):
            open_indexes = _open_from(run, self._index, limit)
            self.examined += len(open_indexes)
            ends_of, first_id = self.holder.ends_ms, run.lot.first_id
            lost = [
                (run, first_id + index)
                for index in open_indexes
                if ends_of(run, run.ends_ms(index)) <= mono_ms
            ]
            if len(open_indexes) == limit:
                self._run, self._index = run, open_indexes[-1] + 1
            else:
                self._ended.append(run)
        return lost


def _open_from(run: RunLease, index: int, limit: int) -> list[int]:
    """Returns up to `limit` indexes of the lot, from `index` on, that are still leased."""
    if run.settled is None:
        return list(range(index, min(index + limit, run.start + run.count)))
    found: list[int] = []
    at = index - run.start - 1
    while len(found) < limit and (at := run.settled.find(0, at + 1)) >= 0:
        found.append(run.start + at)
    return found
