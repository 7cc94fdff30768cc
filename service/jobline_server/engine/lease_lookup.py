"""A look at one holder's leases: those whose time is up are found a slice at a time.

Each lease is looked at once, and each job of a run that is lost is found once, however many slices
it takes: the look remembers where it is. What happens between two slices is seen: a lease that was
settled is gone, and a worker that was heard keeps what is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Job
from jobline_server.engine.lot import RunLease

Lost = tuple[RunLease | Job, int]
"""A lease whose time is up on a job, and the job's id."""


class LeaseLookup:
    """Begins when the holder is due. `earliest_ms` is when the first of the leases ends that are
    left, of those that were looked at; None if none is.
    """

    __slots__ = ("_ended", "_index", "_keys", "_run", "earliest_ms", "holder", "looked")

    def __init__(self, holder: Holder) -> None:
        self.holder = holder
        self.earliest_ms: int | None = None
        self.looked = 0
        """How many leases and jobs of runs, in all."""
        self._keys: Iterator[int] = iter(list(holder.leases))
        self._run: RunLease | None = None
        self._index = 0
        self._ended: list[RunLease] = []

    def take(self, mono_ms: int, *, lost_max: int, looked_max: int) -> tuple[list[Lost], bool]:
        """Finds at most `lost_max` jobs that are lost, looking at `looked_max` leases at most; and
        says whether the look has ended.
        """
        lost: list[Lost] = []
        stop_at = self.looked + looked_max
        while len(lost) < lost_max and self.looked < stop_at:
            if self._run is not None:
                most = min(lost_max - len(lost), stop_at - self.looked)
                lost += self._take_of_run(self._run, mono_ms, most)
                continue
            key = next(self._keys, None)
            if key is None:
                return lost, True
            self.looked += 1
            lease = cast("RunLease | Job | None", self.holder.leases.get(key))
            if lease is None or self._is_left(lease, mono_ms):
                continue
            if isinstance(lease, Job):
                lost.append((lease, lease.id))
            else:
                self._run, self._index = lease, lease.start
        return lost, False

    def fold(self) -> None:
        """To be called when what `take` found is settled: of runs that were looked at to their end,
        only what was extended is left.
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

    def _take_of_run(self, run: RunLease, mono_ms: int, most: int) -> list[Lost]:
        """Goes on in a run; some of its jobs may have been extended."""
        lost: list[Lost] = []
        self._run = None
        if run.remaining and not self._is_left(run, mono_ms):
            open_indexes = _open_from(run, self._index, most)
            self.looked += len(open_indexes)
            ends_of, first_id = self.holder.ends_ms, run.lot.first_id
            lost = [
                (run, first_id + index)
                for index in open_indexes
                if ends_of(run, run.ends_ms(index)) <= mono_ms
            ]
            if len(open_indexes) == most:
                self._run, self._index = run, open_indexes[-1] + 1
            else:
                self._ended.append(run)
        return lost


def _open_from(run: RunLease, index: int, most: int) -> list[int]:
    """The first `most` indexes of the lot at or after `index` that are still leased."""
    if run.settled is None:
        return list(range(index, min(index + most, run.start + run.count)))
    found: list[int] = []
    at = index - run.start - 1
    while len(found) < most and (at := run.settled.find(0, at + 1)) >= 0:
        found.append(run.start + at)
    return found
