"""The schedules of a shard: by name, by queue, by their last jobs, and by when they are due.

The timers are a heap, so that one moment costs the schedules that are due and no others. An entry
that became obsolete is skipped at its time; when half of them are, the heap is made anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush

from jobline_server.engine.schedule import Schedule

# Obsolete entries of the heap that are never worth the while.
SPARE = 64
# A schedule is looked at again this long after it could not be decided: a bug of ours, as the
# reason, must not keep others from their times.
AGAIN_MS = 60_000


class Schedules:
    """The schedules of a shard."""

    __slots__ = ("_heap", "by_job", "by_name", "by_queue", "payload_bytes")

    def __init__(self) -> None:
        self.by_name: dict[str, Schedule] = {}
        self.by_queue: dict[str, dict[str, Schedule]] = {}
        self.by_job: dict[int, Schedule] = {}
        """By the id of the last job."""
        self.payload_bytes = 0
        self._heap: list[tuple[int, int, Schedule]] = []

    def __len__(self) -> int:
        return len(self.by_name)

    def find(self, name: str) -> Schedule | None:
        """Returns the schedule with this name; None without."""
        return self.by_name.get(name)

    def of_queue(self, queue: str) -> Iterable[Schedule]:
        """Returns the schedules of a queue."""
        return self.by_queue.get(queue, {}).values()

    def put(self, schedule: Schedule) -> None:
        """Adds a schedule."""
        self.by_name[schedule.name] = schedule
        self.by_queue.setdefault(schedule.settings.queue, {})[schedule.name] = schedule
        self.payload_bytes += len(schedule.settings.job.payload)
        if schedule.last_job_id:
            self.by_job[schedule.last_job_id] = schedule
        self.arm(schedule)

    def drop(self, schedule: Schedule) -> None:
        """Removes a schedule."""
        del self.by_name[schedule.name]
        of_queue = self.by_queue[schedule.settings.queue]
        del of_queue[schedule.name]
        if not of_queue:
            del self.by_queue[schedule.settings.queue]
        self.payload_bytes -= len(schedule.settings.job.payload)
        self.by_job.pop(schedule.last_job_id, None)
        schedule.armed_ms = None

    def note_job(self, schedule: Schedule, job_id: int) -> None:
        """Notes the last job of a schedule."""
        self.by_job.pop(schedule.last_job_id, None)
        schedule.last_job_id = job_id
        self.by_job[job_id] = schedule

    def arm(self, schedule: Schedule, at_ms: int | None = None) -> None:
        """Has a schedule looked at when it is due: at its next run; at once if a run waits and the
        last job has ended. `at_ms`: then instead.
        """
        due_ms = _due_ms(schedule) if at_ms is None else at_ms
        if due_ms == schedule.armed_ms:
            return
        schedule.armed_ms = due_ms
        if due_ms is None:
            return
        heappush(self._heap, (due_ms, schedule.number, schedule))
        if len(self._heap) > 2 * len(self.by_name) + SPARE:
            self._heap = [entry for entry in self._heap if entry[2].armed_ms == entry[0]]
            heapify(self._heap)

    def restart(self) -> None:
        """Has every run that waits looked at, after recovery: its job may be gone."""
        for schedule in self.by_name.values():
            if schedule.waiting_ms and not schedule.paused:
                self.arm(schedule, 0)

    def first_ms(self) -> int | None:
        """Returns when the first schedule is due, in wall time; None if none is."""
        heap = self._heap
        while heap and heap[0][2].armed_ms != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else None

    def pop_due(self, wall_ms: int) -> Iterator[Schedule]:
        """Yields schedules that are due, in order of their time. Each is no longer armed: decide
        it, or `arm` it again, before the next.
        """
        while (first_ms := self.first_ms()) is not None and first_ms <= wall_ms:
            schedule = heappop(self._heap)[2]
            schedule.armed_ms = None
            yield schedule


def _due_ms(schedule: Schedule) -> int | None:
    if schedule.paused:
        return None
    if schedule.waiting_ms and not schedule.is_running():
        return 0
    return schedule.next_start_ms()
