"""Event runs: the same event of many jobs of a shard, in columns.

A thousand jobs pushed together are one run for all watchers. Filters apply to the run, and single
events are only made for a watcher that takes no runs.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from jobline_server.engine.rules import NO_RULES, JobRules
from jobline_server.engine.values import EndReason, JobError, JobState


@dataclass(slots=True)
class EventView:
    """The fields of an event; `kind` is the number of `EventKind` in the protocol."""

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
    batch_id: int = 0
    group: str = ""
    principal: str = ""
    rules: JobRules = NO_RULES
    """Those of the jobs, for the events of their ends: not part of the event."""


class Columns(NamedTuple):
    """The values that differ between the runs of ids of an event run, one per run. An empty column
    means that `EventRun.shared` has the value of all.
    """

    names: Sequence[str] = ()
    deliveries: Sequence[int] = ()
    attempts: Sequence[int] = ()
    workers: Sequence[str] = ()
    run_at_ms: Sequence[int] = ()
    rules: Sequence[JobRules] = ()

    def part(self, runs: slice) -> Columns:
        """Returns the columns of these runs."""
        names, deliveries, attempts, workers, run_at_ms, rules = self
        return Columns(
            names[runs],
            deliveries[runs],
            attempts[runs],
            workers[runs],
            run_at_ms[runs],
            rules[runs],
        )


NO_COLUMNS = Columns()


def packed(numbers: Iterable[int]) -> array[int]:
    """Packs numbers that are kept for watchers. The garbage collector would visit each number of a
    list: tens of milliseconds at a time where many jobs are handed out one by one.
    """
    return array("q", numbers)


@dataclass(slots=True)
class EventRun:
    """One event of many jobs, in the order in which it happened: `starts=[7], counts=[3]` names
    jobs 7, 8, 9. Without `starts` it is an event of a queue.
    """

    shared: EventView
    starts: Sequence[int] = ()
    counts: Sequence[int] = ()
    columns: Columns = NO_COLUMNS
    total: int = 1
    _ends: Sequence[int] = ()

    def part(self, skip: int, count: int) -> EventRun:
        """Returns a run of `count` of its events, after the first `skip`."""
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
        """Yields the indexes of the events of one job."""
        at = 0
        for start, count in zip(self.starts, self.counts, strict=True):
            if start <= job_id < start + count:
                yield at + job_id - start
            at += count
