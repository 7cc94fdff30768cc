"""Demands: what queues with an objective have to do, and how many workers that takes.

Nothing is counted for it: every ten seconds a sample of what queues and `Durations` count anyway is
kept for each queue that has an objective, and their differences are the last minutes. Such queues
are found at the start, and when somebody looks at them, as whoever changes their settings does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from jobline_server.engine.limits import SECOND_MS
from jobline_server.engine.objective import Objective
from jobline_server.engine.queue import Queue
from jobline_server.engine.staffing import Demand, slots_needed, workers_for
from jobline_server.engine.values import JobState, Now
from jobline_server.runtime.calls.worker_stream import WorkerStream
from jobline_server.runtime.core import Core
from jobline_server.runtime.durations import BOUNDS, QueueDurations
from jobline_server.runtime.pace import Pace
from jobline_server.runtime.views import WorkersNeeded
from jobline_server.runtime.workload import longest_wait_ms, startable, workload

# Queues whose demand is known; each has about 30 samples.
OBJECTIVES_MAX = 100
SAMPLE_MS = 10 * SECOND_MS
# Rates of two spans are compared, so that a rise shows soon, and a pause does not at once.
SHORT_MS, LONG_MS = 60 * SECOND_MS, 300 * SECOND_MS
# A number falls when it was lower for so long.
HOLD_MS = 120 * SECOND_MS
# Workers whose windows are looked at for an average.
WORKERS_MAX = 100


class _Sample(NamedTuple):
    """Counts since the start, at a moment."""

    at_ms: int
    arrived: int
    completed: int
    seconds: float
    squares: float


class _QueueDemand:
    """The last samples of a queue, and the largest numbers of each ten seconds of the hold."""

    __slots__ = ("durations", "held", "samples", "slots_per_worker")

    def __init__(self, durations: QueueDurations) -> None:
        self.durations = durations
        self.samples: deque[_Sample] = deque(maxlen=LONG_MS // SAMPLE_MS + 1)
        self.held: deque[tuple[int, int]] = deque(maxlen=HOLD_MS // SAMPLE_MS + 1)
        # 0 until a worker is seen.
        self.slots_per_worker = 0.0

    def sample(self, queue: Queue, now: Now) -> _Sample:
        """Returns the counts at this moment."""
        waiting, running = self.durations.waiting, self.durations.running
        squares, low = 0.0, 0.0
        for count, high in zip(running.buckets, (*BOUNDS, BOUNDS[-1]), strict=True):
            squares += count * ((low + high) / 2) ** 2
            low = high
        return _Sample(
            now.mono_ms,
            queue.counts[JobState.READY] + sum(waiting.buckets),
            sum(running.buckets),
            running.seconds,
            squares,
        )

    def hold(self, workers: int, mono_ms: int) -> int:
        """Returns the largest number of the last two minutes, this one included."""
        slot = mono_ms // SAMPLE_MS
        if self.held and self.held[-1][0] == slot:
            workers = max(workers, self.held.pop()[1])
        self.held.append((slot, workers))
        oldest = slot - HOLD_MS // SAMPLE_MS
        return max(most for at, most in self.held if at >= oldest)


class Demands:
    """The queues with an objective."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._by_queue: dict[str, _QueueDemand] = {}
        for slot in core.slots:
            for queue in slot.shard.queues.values():
                if queue.settings.objective is not None:
                    self._add(queue.name)

    def _add(self, queue: str) -> None:
        if queue not in self._by_queue and len(self._by_queue) < OBJECTIVES_MAX:
            durations = self._core.durations.own(queue)
            if durations is not None:
                self._by_queue[queue] = _QueueDemand(durations)

    async def sample(self) -> int:
        """Keeps a sample of each queue, in slices; returns how many there are. What was measured of
        queues that are gone makes room for that of others.
        """
        find = self._core.slots.find_queue
        self._core.durations.forget_missing(lambda name: find(name) is not None)
        pace = Pace()
        for name, demand in list(self._by_queue.items()):
            await pace.rest()
            queue = find(name)
            if queue is None or queue.settings.objective is None:
                self._by_queue.pop(name, None)
                continue
            now = self._core.now()
            demand.samples.append(demand.sample(queue, now))
            self._note_windows(name, demand)
            self._needed(queue, demand, now)
        return len(self._by_queue)

    def of(self, queue: Queue) -> WorkersNeeded | None:
        """Returns how many workers a queue needs now; None where that is not known."""
        if queue.settings.objective is None:
            return None
        self._add(queue.name)
        demand = self._by_queue.get(queue.name)
        return None if demand is None else self._needed(queue, demand, self._core.now())

    def _note_windows(self, queue: str, demand: _QueueDemand) -> None:
        """Averages how many jobs its workers take at a time; those that are gone still count."""
        consumers = islice(self._core.rings.consumers(queue), WORKERS_MAX)
        windows = [one.session.window.jobs for one in consumers if isinstance(one, WorkerStream)]
        known = [jobs for jobs in windows if jobs]
        if known:
            demand.slots_per_worker = sum(known) / len(known)

    def _needed(self, queue: Queue, known: _QueueDemand, now: Now) -> WorkersNeeded | None:
        objective = queue.settings.objective
        if objective is None:
            return None
        if not known.slots_per_worker:
            self._note_windows(queue.name, known)
        demand = _demand(queue, known, now)
        workers = known.hold(_workers(queue, known, demand, objective), now.mono_ms)
        return WorkersNeeded(
            workers,
            max(known.slots_per_worker, 1.0),
            demand.backlog,
            demand.arrivals,
            demand.run_seconds,
        )


def _workers(queue: Queue, known: _QueueDemand, demand: Demand, objective: Objective) -> int:
    slots = max(slots_needed(demand, objective), workload(queue) > 0)
    if not demand.run_seconds and known.slots_per_worker:
        # As after a start: those that work are needed until it is known for how long.
        slots = max(slots, queue.counts[JobState.ACTIVE])
    return workers_for(slots, known.slots_per_worker, queue.settings.concurrency)


def _demand(queue: Queue, known: _QueueDemand, now: Now) -> Demand:
    latest = known.sample(queue, now)
    arrivals = max(_rate(known.samples, latest, SHORT_MS), _rate(known.samples, latest, LONG_MS))
    ran = _ran(known.samples, latest)
    mean, spread = 0.0, 1.0
    if ran.completed:
        mean = ran.seconds / ran.completed
        if mean:
            spread = max(ran.squares / ran.completed / mean**2 - 1, 0.0)
    oldest_seconds = longest_wait_ms(queue, now.wall_ms) / SECOND_MS
    return Demand(startable(queue), oldest_seconds, arrivals, mean, spread)


def _rate(samples: Sequence[_Sample], latest: _Sample, span_ms: int) -> float:
    """Returns how many jobs came a second since the first sample of this span."""
    since_ms = latest.at_ms - span_ms
    first = next((one for one in samples if one.at_ms >= since_ms), latest)
    # Before the first sample there were none: a burst at the start is no rate.
    elapsed_ms = max(latest.at_ms - first.at_ms, SHORT_MS)
    return max(latest.arrived - first.arrived, 0) * SECOND_MS / elapsed_ms


def _ran(samples: Sequence[_Sample], latest: _Sample) -> _Sample:
    """Returns what completed since the first sample, or since the start if nothing did."""
    first = samples[0] if samples else latest
    if latest.completed == first.completed:
        return latest
    return _Sample(*(after - before for after, before in zip(latest, first, strict=True)))  # type: ignore[arg-type]  # numbers all
