"""Durations: how long jobs waited to be handed out, and how long they ran until they completed.

There is one histogram per queue, and one for all queues over a bound. Jobs that were handed out or
completed together share an observation: a run is one, however long, and single jobs are counted by
the moment they have in common. No step is taken per job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from operator import attrgetter

from jobline_server.engine.commands import Leased
from jobline_server.engine.endings import JobsEnded, RunsEnded
from jobline_server.engine.values import JobState
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.telemetry.calls import Histogram

# Queues with histograms of their own, by who comes first; those that follow share one under "".
QUEUES_MAX = 100
OTHERS = ""
# Those and queues with an objective.
WITH_OBJECTIVES_MAX = 200
# A job may wait or run for a moment or for a day.
SHOWN_BOUNDS = (0.001, 0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3_600.0, 86_400.0)
"""Those of metrics, where each costs a series per queue."""
BOUNDS = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0),
    *(120.0, 300.0, 600.0, 1_200.0, 3_600.0, 7_200.0, 18_000.0, 36_000.0, 86_400.0),
)
"""Close enough for percentiles."""

_ready_ms = attrgetter("ready_ms")
_leased_ms = attrgetter("leased_ms")


class QueueDurations:
    """Histograms of one queue."""

    __slots__ = ("running", "waiting")

    def __init__(self) -> None:
        self.waiting = Histogram(BOUNDS)
        self.running = Histogram(BOUNDS)

    def add_all(self, of: QueueDurations) -> None:
        """Adds the observations of another queue."""
        self.waiting.add_all(of.waiting)
        self.running.add_all(of.running)


class Durations:
    """Histograms by queue."""

    def __init__(self) -> None:
        self.by_queue: dict[str, QueueDurations] = {}

    def _of(self, queue: str) -> QueueDurations:
        found = self.by_queue.get(queue)
        if found is None:
            name = queue if self._own_count() < QUEUES_MAX else OTHERS
            found = self.by_queue.get(name) or self.by_queue.setdefault(name, QueueDurations())
        return found

    def _own_count(self) -> int:
        return len(self.by_queue) - (OTHERS in self.by_queue)

    def own(self, queue: str) -> QueueDurations | None:
        """Returns the histograms of a queue with an objective, made if there is room for more of
        them; None if it shares those of the others.
        """
        found = self.by_queue.get(queue)
        if found is None and self._own_count() < WITH_OBJECTIVES_MAX:
            found = self.by_queue[queue] = QueueDurations()
        return found

    def forget_missing(self, exists: Callable[[str], bool]) -> None:
        """Adds what is known of queues that do not exist any more to the histograms of the others,
        so that totals stay, and later queues have room for histograms of their own.
        """
        gone = [name for name in self.by_queue if name != OTHERS and not exists(name)]
        for name in gone:
            others = self.by_queue.setdefault(OTHERS, QueueDurations())
            others.add_all(self.by_queue.pop(name))

    def waited(self, queue: str, leased: Leased, now_ms: int) -> None:
        """Observes how long jobs of a queue waited, when they are handed out."""
        add = self._of(queue).waiting.add
        for run in leased.runs:
            add(_seconds(run.ready_ms, now_ms), len(run.payloads))
        for ready_ms, count in Counter(map(_ready_ms, leased.jobs)).items():
            add(_seconds(ready_ms, now_ms), count)

    def handed_out(self) -> int:
        """Returns how many jobs of all queues were handed out, each time counted."""
        return sum(sum(queue.waiting.buckets) for queue in self.by_queue.values())

    def on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Observes how long jobs ran, when their end is on disk."""
        for batch in batches:
            for ending in batch.endings:
                if isinstance(ending, RunsEnded):
                    if ending.state is JobState.COMPLETED:
                        add = self._of(ending.lot.queue.name).running.add
                        add(_seconds(ending.leased_ms, ending.ended_ms), sum(ending.counts))
                elif isinstance(ending, JobsEnded) and ending.state is JobState.COMPLETED:
                    self._singles_ran(ending)

    def _singles_ran(self, ending: JobsEnded) -> None:
        add = self._of(ending.jobs[0].queue.name).running.add
        for leased_ms, count in Counter(map(_leased_ms, ending.jobs)).items():
            add(_seconds(leased_ms, ending.ended_ms), count)


def _seconds(since_ms: int, until_ms: int) -> float:
    """Returns the seconds between two moments, never below 0, as the wall clock may be set back."""
    return max(until_ms - since_ms, 0) / 1_000
