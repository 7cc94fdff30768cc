"""Periodic task: ages, deletes and evicts ended jobs. Each slice is committed as facts.

By age: an ended job becomes STALE after its own retention age, else the queue's, else a default:
an hour for cancelled and expired jobs and for completed jobs beyond the newest thousand, seven days
for dead jobs, which a queue may also keep for ever. It is deleted when it was STALE for its own
time, else its queue's, else an hour.

By count: a queue keeps up to its own count of each state, else a hundred thousand completed jobs
and a gibibyte of dead ones (or its own number of bytes), and evicts the oldest first. A job with a
count of its own is evicted once that many kept jobs ended after it. Evicted jobs are not STALE
first.

A queue is checked only when something may be due: a job ended there, its settings changed, or its
oldest jobs reach their age. So the cost of a run depends on what is due, not on the number of
queues.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from jobline_server.background.periodic import Counts
from jobline_server.engine import effective, limits
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import JobState, Now
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.retention import EndedRetention, Slice, in_steps
from jobline_server.runtime.ended.retention_hints import QueueState, RetentionHint

EVERY_SECONDS = 10.0
# The pause after a run whose slices were full: jobs may end faster than one slice per ten seconds.
AGAIN_SECONDS = 0.05
NO_LIMIT = 1 << 62


class Calendar:
    """Schedules when the oldest jobs of each queue and state reach their age."""

    __slots__ = ("_due", "_heap")

    def __init__(self) -> None:
        self._due: dict[QueueState, int] = {}
        self._heap: list[tuple[int, QueueState]] = []

    def __contains__(self, queue_state: QueueState) -> bool:
        return queue_state in self._due

    def schedule(self, queue_state: QueueState, due_ms: int) -> None:
        """Sets when a queue and state are due, instead of any time set before."""
        if self._due.get(queue_state) != due_ms:
            self._due[queue_state] = due_ms
            heappush(self._heap, (due_ms, queue_state))

    def cancel(self, queue_state: QueueState) -> None:
        """Removes a queue and state until they are scheduled again."""
        self._due.pop(queue_state, None)

    def next_ms(self) -> int | None:
        """Returns when the next queue and state is due."""
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ms: int) -> Iterator[QueueState]:
        """Removes and yields what is due."""
        while self._heap and self._heap[0][0] <= now_ms:
            due_ms, queue_state = heappop(self._heap)
            if self._due.get(queue_state) == due_ms:
                del self._due[queue_state]
                yield queue_state


@dataclass(slots=True)
class RetentionTask:
    """Ages and evicts ended jobs."""

    core: Core
    retention: EndedRetention
    name: str = "retention"
    _is_unfinished: bool = field(default=False, init=False)
    _calendar: Calendar | None = field(default=None, init=False)
    _changed: dict[QueueState, RetentionHint] = field(default_factory=dict, init=False)
    _due: dict[QueueState, None] = field(default_factory=dict, init=False)
    _counted: set[QueueState] = field(default_factory=set, init=False)

    @property
    def every_seconds(self) -> float:
        """The pause; shorter when the last run did not finish."""
        return AGAIN_SECONDS if self._is_unfinished else EVERY_SECONDS

    async def run_once(self, now: Now) -> Counts:
        """Handles one slice of everything that is due; returns counts of jobs."""
        counts = {"staled": 0, "deleted": 0, "evicted": 0}
        # What goes on where the last run stopped has enough to do. If it wrote what has just ended,
        # twenty times a second, all would be written that a queue completes and does not keep, and
        # that would have to be evicted too: there would be no end of it.
        if not self._is_unfinished:
            await self.retention.write()
        self._is_unfinished = False
        async for name, done in self._slices(now):
            counts[name] += done.jobs
            self._is_unfinished |= done.is_full
        return counts

    async def next_ms(self, now: Now) -> int | None:
        """Returns when something is due next: by its own age, by that of its queue, or for good."""
        has_news = self._is_unfinished or self._changed or self._due
        if self._calendar is None or has_news or await self.retention.has_hints():
            return now.wall_ms
        known = (self._calendar.next_ms(), await self.retention.next_own_ms(now.wall_ms))
        return min((due_ms for due_ms in known if due_ms is not None), default=None)

    async def _slices(self, now: Now) -> AsyncIterator[tuple[str, Slice]]:
        yield "deleted", await self.retention.delete_stale(now.wall_ms)
        yield "staled", await self.retention.stale_by_own_age(now.wall_ms)
        calendar = await self._opened()
        async for queue_state, hint in in_steps(self.retention.hints.take().items()):
            self._changed[queue_state] = hint
            self._plan(calendar, queue_state, hint, now)
        # An item leaves a list only when it is done: one that fails is checked again.
        async for queue_state in in_steps(calendar.pop_due(now.wall_ms)):
            self._due[queue_state] = None
        async for queue_state in in_steps(list(self._due)):
            done = await self._stale(calendar, queue_state, now)
            del self._due[queue_state]
            if done is not None:
                yield "staled", done
        async for queue_state in in_steps(list(self._changed)):
            if self._changed[queue_state].is_counted:
                self._counted.add(queue_state)
            is_full = False
            async for done in self._evictions(queue_state):
                yield "evicted", done
                is_full |= done.is_full
            if not is_full:
                del self._changed[queue_state]

    async def _opened(self) -> Calendar:
        """Returns the calendar. The first call after a start marks all queues as changed."""
        if self._calendar is None:
            await self.retention.note_all_queues()
            self._counted |= await self.retention.with_own_counts()
            self._calendar = Calendar()
        return self._calendar

    def _plan(
        self, calendar: Calendar, queue_state: QueueState, hint: RetentionHint, now: Now
    ) -> None:
        """Schedules a check for when the first of the ended jobs reaches its age."""
        queue = self._queue_of(queue_state)
        if queue is None or not _may_age(queue, queue_state[1]):
            return
        age_ms, keep_newest = _age(queue, queue_state[1])
        if hint.first_ms is None or (keep_newest and queue_state not in calendar):
            # Jobs past their age may have been kept so far because they were among the newest.
            calendar.schedule(queue_state, now.wall_ms)
        elif queue_state not in calendar:
            calendar.schedule(queue_state, hint.first_ms + age_ms + 1)

    async def _stale(self, calendar: Calendar, queue_state: QueueState, now: Now) -> Slice | None:
        queue, state = self._queue_of(queue_state), queue_state[1]
        if queue is None or not _may_age(queue, state):
            return None
        calendar.schedule(queue_state, now.wall_ms)  # so that a check that fails is retried
        age_ms, keep_newest = _age(queue, state)
        done = await self.retention.stale_by_age(
            queue.name, state, ended_before_ms=now.wall_ms - age_ms, keep_newest=keep_newest
        )
        oldest_ms = await self.retention.oldest_ms(queue_state)
        if done.is_full:
            return done
        calendar.cancel(queue_state)
        if oldest_ms is not None and oldest_ms + age_ms >= now.wall_ms:
            calendar.schedule(queue_state, oldest_ms + age_ms + 1)
        # Otherwise the oldest is kept as one of the newest, until more jobs end.
        return done

    async def _evictions(self, queue_state: QueueState) -> AsyncIterator[Slice]:
        queue, state = self._queue_of(queue_state), queue_state[1]
        if queue is None:
            return
        if _may_be_too_many(queue, state):
            keep_count, keep_bytes = _kept(queue, state)
            yield await self.retention.evict(
                queue.name, state, keep_count=keep_count, keep_bytes=keep_bytes
            )
        if queue_state in self._counted:
            self._counted.discard(queue_state)
            async for done in self.retention.evict_by_own_count(queue_state):
                self._counted.add(queue_state)
                yield done

    def _queue_of(self, queue_state: QueueState) -> Queue | None:
        return self.core.slots.find_queue(queue_state[0])


def _may_age(queue: Queue, state: JobState) -> bool:
    """Returns whether a query may find jobs to age; most queues have too few."""
    age_ms, keep_newest = _age(queue, state)
    return age_ms != NO_LIMIT and queue.counts[state] > keep_newest


def _may_be_too_many(queue: Queue, state: JobState) -> bool:
    """Returns whether a query may find jobs to evict. Only the ended store knows their sizes."""
    keep_count, keep_bytes = _kept(queue, state)
    return queue.counts[state] > (keep_count if keep_bytes == NO_LIMIT else 0)


def _age(queue: Queue, state: JobState) -> tuple[int, int]:
    """Returns how long ended jobs stay, and how many of the newest stay longer."""
    if state is JobState.DEAD:
        age_ms = effective.dead_age_ms(queue.settings)
        return NO_LIMIT if age_ms is None else age_ms, 0
    queue_age_ms = queue.settings.retention.age_ms
    if queue_age_ms is not None:
        return queue_age_ms, 0
    keep_newest = limits.KEEP_NEWEST if state is JobState.COMPLETED else 0
    return limits.STALE_AFTER_MS_DEFAULT, keep_newest


def _kept(queue: Queue, state: JobState) -> tuple[int, int]:
    """Returns how many jobs, and how many bytes, a queue keeps in an ended state."""
    keep_count, keep_bytes = NO_LIMIT, NO_LIMIT
    if state is JobState.COMPLETED:
        keep_count = limits.COMPLETED_KEPT_MAX
    if state is JobState.DEAD:
        keep_bytes = effective.dead_bytes_max(queue.settings)
    queue_count = queue.settings.retention.count
    return keep_count if queue_count is None else queue_count, keep_bytes
