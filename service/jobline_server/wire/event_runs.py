"""Event runs: the same thing that happened to many jobs of a shard, in columns.

A thousand jobs pushed together are one run, whoever watches: whether a watcher wants it is decided
on the run, and no event is made before somebody has to be shown one.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from jobline_server.engine.values import EndReason, JobError, JobState


@dataclass(slots=True)
class EventView:
    """What an event says; `kind` is the number of `EventKind` in the protocol."""

    shard: int
    offset: int
    at_ms: int
    kind: int
    queue: str
    job_id: int = 0
    name: str = ""
    state: JobState | None = None
    before: JobState | None = None
    delivery: int = 0
    attempt: int = 0
    worker: str = ""
    error: JobError | None = None
    reason: EndReason = EndReason.NONE
    run_at_ms: int = 0
    progress: float = 0.0
    message: str = ""


class Columns(NamedTuple):
    """What the runs of ids of an event run have of their own, one value a run; an empty column
    means that `EventRun.shared` says it for all.
    """

    names: Sequence[str] = ()
    deliveries: Sequence[int] = ()
    attempts: Sequence[int] = ()
    workers: Sequence[str] = ()
    run_at_ms: Sequence[int] = ()

    def part(self, runs: slice) -> Columns:
        """The columns of some of the runs."""
        names, deliveries, attempts, workers, run_at_ms = self
        return Columns(
            names[runs], deliveries[runs], attempts[runs], workers[runs], run_at_ms[runs]
        )


NO_COLUMNS = Columns()


def packed(numbers: Iterable[int]) -> array[int]:
    """Numbers as they are kept for watchers: a list would have the garbage collector look at each
    of them, tens of milliseconds at a time where many jobs are handed out one by one.
    """
    return array("q", numbers)


@dataclass(slots=True)
class EventRun:
    """`starts[i]`, `counts[i]` name ids, in the order in which it happened to them; no `starts`: it
    happened to a queue.
    """

    shared: EventView
    starts: Sequence[int] = ()
    counts: Sequence[int] = ()
    columns: Columns = NO_COLUMNS
    total: int = 1
    _ends: Sequence[int] = ()

    def part(self, skip: int, count: int) -> EventRun:
        """`count` of its events, after the first `skip`."""
        if not self.starts or (not skip and count == self.total):
            return self
        if not self._ends:
            self._ends = packed(accumulate(self.counts))
        ends = self._ends
        low = bisect_right(ends, skip)
        high = bisect_right(ends, skip + count - 1) + 1
        starts, counts = list(self.starts[low:high]), list(self.counts[low:high])
        before = skip - (ends[low] - counts[0])
        starts[0] += before
        counts[0] -= before
        counts[-1] -= ends[high - 1] - (skip + count)
        return EventRun(self.shared, starts, counts, self.columns.part(slice(low, high)), count)

    def places_of(self, job_id: int) -> Iterator[int]:
        """At which of its events this job comes up."""
        at = 0
        for start, count in zip(self.starts, self.counts, strict=True):
            if start <= job_id < start + count:
                yield at + job_id - start
            at += count
