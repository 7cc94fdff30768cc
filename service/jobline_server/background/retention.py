"""Retention: ended jobs become STALE, then are deleted; both are facts, a slice at a time.

How long until they are STALE: a job's own age, else the queue's, else an hour for cancelled and
expired jobs and for completed ones beyond the newest thousand, and seven days for dead ones. An
hour later they are deleted.

How many: the queue's own count of each state, else a hundred thousand completed jobs and a gibibyte
of dead ones; this holds for all jobs, and the oldest go first. A job that has a count of its own
goes as soon as so many are kept that ended after it. Neither is STALE before.

A queue is looked at when something may be due there: jobs ended there, its settings were changed,
or the oldest of its jobs reach their age. So a run costs what became due, however many queues there
are.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from jobline_server.background.periodic import Counts
from jobline_server.engine import limits
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import JobState, Now
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.retention import EndedRetention, Slice, in_steps
from jobline_server.runtime.ended.retention_hints import Ended, Place

EVERY_SECONDS = 10.0
# After a run that left something: a queue whose jobs end one by one would outrun a slice every ten
# seconds.
AGAIN_SECONDS = 0.05
NO_LIMIT = 1 << 62


class Calendar:
    """When the oldest jobs of each place reach their age."""

    __slots__ = ("_due", "_heap")

    def __init__(self) -> None:
        self._due: dict[Place, int] = {}
        self._heap: list[tuple[int, Place]] = []

    def __contains__(self, place: Place) -> bool:
        return place in self._due

    def note(self, place: Place, due_ms: int) -> None:
        """This place is due then, and at no other time."""
        if self._due.get(place) != due_ms:
            self._due[place] = due_ms
            heappush(self._heap, (due_ms, place))

    def forget(self, place: Place) -> None:
        """This place is not due before it is noted again."""
        self._due.pop(place, None)

    def pop_due(self, now_ms: int) -> Iterator[Place]:
        """Takes out the places whose time has come, one at a time."""
        while self._heap and self._heap[0][0] <= now_ms:
            due_ms, place = heappop(self._heap)
            if self._due.get(place) == due_ms:
                del self._due[place]
                yield place


@dataclass(slots=True)
class RetentionTask:
    """Ages and evicts ended jobs."""

    core: Core
    ageing: EndedRetention
    name: str = "retention"
    _left_some: bool = field(default=False, init=False)
    _calendar: Calendar | None = field(default=None, init=False)
    _changed: dict[Place, Ended] = field(default_factory=dict, init=False)
    _due: dict[Place, None] = field(default_factory=dict, init=False)
    _counted: set[Place] = field(default_factory=set, init=False)

    @property
    def every_seconds(self) -> float:
        """Sooner when the run before left something."""
        return AGAIN_SECONDS if self._left_some else EVERY_SECONDS

    async def run_once(self, now: Now) -> Counts:
        """One slice of everything that is due."""
        counts = {"staled": 0, "deleted": 0, "evicted": 0}
        self._left_some = False
        async for name, done in self._slices(now):
            counts[name] += done.jobs
            self._left_some |= done.is_full
        return counts

    async def _slices(self, now: Now) -> AsyncIterator[tuple[str, Slice]]:
        stale_before_ms = now.wall_ms - limits.DELETE_AFTER_MS
        yield "deleted", await self.ageing.delete_stale(stale_before_ms)
        yield "staled", await self.ageing.stale_by_own_age(now.wall_ms)
        calendar = await self._opened()
        async for place, ended in in_steps(self.ageing.places.take().items()):
            self._changed[place] = ended
            self._plan(calendar, place, ended, now)
        # A place goes off a list when its looks are over: one that fails is looked at again.
        async for place in in_steps(calendar.pop_due(now.wall_ms)):
            self._due[place] = None
        async for place in in_steps(list(self._due)):
            done = await self._stale(calendar, place, now)
            del self._due[place]
            if done is not None:
                yield "staled", done
        async for place in in_steps(list(self._changed)):
            if self._changed[place].is_counted:
                self._counted.add(place)
            is_full = False
            async for done in self._evictions(place):
                yield "evicted", done
                is_full |= done.is_full
            if not is_full:
                del self._changed[place]

    async def _opened(self) -> Calendar:
        """Notes everything once, after the start; from then on only what changes."""
        if self._calendar is None:
            await self.ageing.note_all_queues()
            self._counted |= await self.ageing.counted_places()
            self._calendar = Calendar()
        return self._calendar

    def _plan(self, calendar: Calendar, place: Place, ended: Ended, now: Now) -> None:
        """Notes when to look for jobs that reach their age: what ended later reaches it later."""
        queue = self._queue_of(place)
        if queue is None or not _may_age(queue, place[1]):
            return
        age_ms, keep_newest = _age(queue, place[1])
        if ended.first_ms is None or (keep_newest and place not in calendar):
            # What is old already was kept as one of the newest, perhaps.
            calendar.note(place, now.wall_ms)
        elif place not in calendar:
            calendar.note(place, ended.first_ms + age_ms + 1)

    async def _stale(self, calendar: Calendar, place: Place, now: Now) -> Slice | None:
        queue, state = self._queue_of(place), place[1]
        if queue is None or not _may_age(queue, state):
            return None
        calendar.note(place, now.wall_ms)  # so that a look which fails is tried again
        age_ms, keep_newest = _age(queue, state)
        done = await self.ageing.stale_by_age(
            queue.name, state, ended_before_ms=now.wall_ms - age_ms, keep_newest=keep_newest
        )
        oldest_ms = await self.ageing.oldest_ms(place)
        if done.is_full:
            return done
        calendar.forget(place)
        if oldest_ms is not None and oldest_ms + age_ms >= now.wall_ms:
            calendar.note(place, oldest_ms + age_ms + 1)
        # Else the oldest stays as one of the newest, until more have ended.
        return done

    async def _evictions(self, place: Place) -> AsyncIterator[Slice]:
        queue, state = self._queue_of(place), place[1]
        if queue is None:
            return
        if _may_be_too_many(queue, state):
            keep_count, keep_bytes = _kept(queue, state)
            yield await self.ageing.evict(
                queue.name, state, keep_count=keep_count, keep_bytes=keep_bytes
            )
        if place in self._counted:
            self._counted.discard(place)
            async for done in self.ageing.evict_by_own_count(place):
                self._counted.add(place)
                yield done

    def _queue_of(self, place: Place) -> Queue | None:
        return self.core.shard_of_queue(place[0]).queues.get(place[0])


def _may_age(queue: Queue, state: JobState) -> bool:
    """Whether a look may find anything: most queues have not that many jobs."""
    _, keep_newest = _age(queue, state)
    return queue.ended.get(state, 0) > keep_newest


def _may_be_too_many(queue: Queue, state: JobState) -> bool:
    """Whether a look may find anything. How large jobs are, only the file knows."""
    keep_count, keep_bytes = _kept(queue, state)
    return queue.ended.get(state, 0) > (keep_count if keep_bytes == NO_LIMIT else 0)


def _age(queue: Queue, state: JobState) -> tuple[int, int]:
    """How long the jobs of a queue stay, and how many of the newest stay longer."""
    own = queue.settings.retention.age_ms
    if own is not None:
        return own, 0
    if state is JobState.DEAD:
        return limits.STALE_AFTER_DEAD_MS_DEFAULT, 0
    keep_newest = limits.KEEP_NEWEST if state is JobState.COMPLETED else 0
    return limits.STALE_AFTER_MS_DEFAULT, keep_newest


def _kept(queue: Queue, state: JobState) -> tuple[int, int]:
    """How many jobs and bytes a queue keeps of those that ended in a state."""
    keep_count, keep_bytes = NO_LIMIT, NO_LIMIT
    if state is JobState.COMPLETED:
        keep_count = limits.COMPLETED_KEPT_MAX
    if state is JobState.DEAD:
        keep_bytes = limits.DEAD_KEPT_BYTES_MAX
    own = queue.settings.retention.count
    return keep_count if own is None else own, keep_bytes
