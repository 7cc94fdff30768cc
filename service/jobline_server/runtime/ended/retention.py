"""Retention: ages, deletes and evicts ended jobs that are due, a slice at a time.

The caller decides how long jobs stay and how many; what jobs have of their own is in the ended
store. A slice is found and changed while nothing else changes ended jobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from jobline_server.engine.decide.admin import decide_evict, decide_pass_over
from jobline_server.engine.values import ENDED_STATES, JobState
from jobline_server.engine.wanted import runs_without
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended import due
from jobline_server.runtime.ended.ended_jobs import EndedJobs
from jobline_server.runtime.ended.retention_hints import QueueState
from jobline_server.runtime.pace import Pace
from jobline_server.storage.ended_store import BEFORE_ALL, EndedSpan, OwnCount

# The most parts in a slice.
SLICE_PARTS = 1_000
# Items handled per iteration of the loop without a query: each takes some microseconds.
STEP_ITEMS = 1_000
# Jobs whose wanters are looked up in one step, and slices of wanted jobs that one call passes.
PART_JOBS = 10_000
PASSED_SLICES = 20
# More than any count that jobs have of their own, and less.
ABOVE_COUNTS = 1 << 40
BELOW_COUNTS = -1

_HELD_STATES = frozenset({int(JobState.COMPLETED), int(JobState.STALE)})

T = TypeVar("T")

Find = Callable[[], Awaitable[Sequence[EndedSpan]]]
Change = Callable[[Sequence[EndedSpan]], Awaitable[int]]


class Slice(NamedTuple):
    """How many jobs were changed, and whether there may be more."""

    jobs: int
    is_full: bool


class EndedRetention:
    """Finds and changes slices of ended jobs."""

    def __init__(self, core: Core, ended: EndedJobs) -> None:
        self._core = core
        self._ended = ended
        self._ended_store = ended.ended_store
        self._wanted = core.load.wanted
        self.hints = ended.hints
        # Behind which stale job the next slice begins: those before it are wanted.
        self._passed = BEFORE_ALL

    async def stale_by_age(
        self, queue: str, state: JobState, *, ended_before_ms: int, keep_newest: int
    ) -> Slice:
        """Makes jobs without an age of their own STALE, all but the newest."""
        find = partial(
            due.past_age,
            self._ended_store,
            queue,
            state,
            ended_before_ms=ended_before_ms,
            keep_newest=keep_newest,
            limit=SLICE_PARTS,
        )
        return await self._slice(find, self._ended.make_stale)

    async def stale_by_own_age(self, now_ms: int) -> Slice:
        """Makes jobs of all queues STALE whose own age has ended."""
        find = partial(due.past_own_age, self._ended_store, now_ms=now_ms, limit=SLICE_PARTS)
        return await self._slice(find, self._ended.make_stale)

    async def delete_stale(self, now_ms: int) -> Slice:
        """Deletes jobs of all queues that have been STALE for long enough, but for those whose
        results live jobs may read. These are passed, at most `PASSED_SLICES` a call, and the next
        call goes on behind them; behind the last it begins with the first.
        """
        pace = Pace()
        while self._wanted.sweep(PART_JOBS):
            await pace.rest()
        for _ in range(PASSED_SLICES):
            after = self._passed
            find = partial(
                due.long_stale, self._ended_store, now_ms=now_ms, after=after, limit=SLICE_PARTS
            )
            done = await self._slice(find, self._delete_unwanted)
            if self._passed == after:
                self._passed = BEFORE_ALL
                return done
            if done.jobs:
                return done
        return Slice(0, is_full=False)

    async def evict(
        self, queue: str, state: JobState, *, keep_count: int, keep_bytes: int
    ) -> Slice:
        """Evicts the oldest jobs of a queue that are too many, or too large together."""
        find = partial(self._too_many, queue, state, keep_count, keep_bytes)
        return await self._slice(find, self._evict)

    async def _too_many(
        self, queue: str, state: JobState, keep_count: int, keep_bytes: int
    ) -> Sequence[EndedSpan]:
        """Returns the oldest of those in the store and of those that wait for room in it, which are
        newer.
        """
        # What moved from one to the other in between would be counted twice.
        async with self._ended.writing:
            waiting = await self._ended.waiting_of(queue, state)
            jobs, size = sum(span.count for span in waiting), sum(span.bytes for span in waiting)
            found = await due.too_many(
                self._ended_store,
                queue,
                state,
                keep_count=max(keep_count - jobs, 0),
                keep_bytes=max(keep_bytes - size, 0),
                limit=SLICE_PARTS,
            )
        if found:
            return found
        too_many = due.oldest(waiting, jobs, size, keep_count=keep_count, keep_bytes=keep_bytes)
        return too_many[:SLICE_PARTS]

    async def write(self) -> None:
        """Writes what has ended, for the slices that follow."""
        await self._ended.write()

    async def has_hints(self) -> bool:
        """Returns whether jobs have ended since the hints were taken, or settings have changed."""
        await self._ended.write()
        return self.hints.has_any

    async def next_own_ms(self, now_ms: int) -> int | None:
        """Returns when the next job is due after now that is STALE, or has an age of its own."""
        return await due.next_own_ms(self._ended_store, now_ms=now_ms)

    async def note_all_queues(self) -> None:
        """Notes that something may be due wherever jobs are kept that are not STALE: those are past
        their age, and found by when they became so.
        """
        queues = [queue for slot in self._core.slots for queue in slot.shard.queues.values()]
        async for queue in in_steps(queues):
            states = [state for state in queue.kept() if state in ENDED_STATES]
            self.hints.note_queue(queue.name, states)

    async def oldest_ms(self, queue_state: QueueState) -> int | None:
        """Returns when the oldest job ended that has no age of its own."""
        return await due.oldest_ms(self._ended_store, *queue_state)

    async def with_own_counts(self) -> set[QueueState]:
        """Returns the queues and states in which jobs have counts of their own."""
        found: set[QueueState] = set()
        own = None
        while (own := await self._ended_store.next_own_count(own)) is not None:
            found.add((own.queue, JobState(own.state)))
            own = OwnCount(own.queue, own.state, BELOW_COUNTS)
        return found

    async def evict_by_own_count(self, queue_state: QueueState) -> AsyncIterator[Slice]:
        """Evicts jobs whose own count is reached: that many kept ones ended later. Yields a slice
        per count, the largest first: what it evicts is never among the newer jobs of a smaller one.
        """
        own = await self._ended_store.next_own_count(OwnCount(*queue_state, ABOVE_COUNTS))
        while own is not None and (own.queue, own.state) == queue_state:
            find = partial(due.beyond_own_count, self._ended_store, own, limit=SLICE_PARTS)
            yield await self._slice(find, self._evict)
            own = await self._ended_store.next_own_count(own)

    async def _evict(self, spans: Sequence[EndedSpan]) -> int:
        """Evicts jobs. Completed ones whose results live jobs may read are STALE instead, due at
        once.
        """
        changed = 0
        for some in _in_parts(spans) if self._wanted else [spans]:
            free, wanted = self._sorted(some)
            if wanted:
                changed += await self._ended.delete(wanted, decide_pass_over)
            changed += await self._ended.delete(free, decide_evict)
        return changed

    async def _delete_unwanted(self, spans: Sequence[EndedSpan]) -> int:
        changed = 0
        for some in _in_parts(spans) if self._wanted else [spans]:
            free, _ = self._sorted(some)
            changed += await self._ended.delete(free)
        self._passed = spans[-1].key() if len(spans) >= SLICE_PARTS else self._passed
        return changed

    def _sorted(self, spans: Sequence[EndedSpan]) -> tuple[Sequence[EndedSpan], list[EndedSpan]]:
        """Returns the jobs that may be deleted, and completed or STALE ones that are wanted."""
        wanted = self._wanted
        if not wanted:
            return spans, []
        free: list[EndedSpan] = []
        held: list[EndedSpan] = []
        for span in spans:
            may_be_held = span.state in _HELD_STATES
            ids = wanted.within(span.first_id, span.count) if may_be_held else []
            if not ids:
                free.append(span)
                continue
            runs = zip(*runs_without([span.first_id], [span.count], ids), strict=True)
            free += [span._replace(first_id=start, count=count) for start, count in runs]
            held += [span._replace(first_id=one, count=1) for one in ids]
        return free, held

    async def _slice(self, find: Find, change: Change) -> Slice:
        """Finds and changes a slice. Earlier changes are written first, so that nothing is found
        twice.
        """
        async with self._ended.changing:
            await self._ended.write_changes()
            spans = await find()
            changed = await change(spans)
            # Where all jobs are of shards that are not here, trying again soon would not help.
            return Slice(changed, is_full=len(spans) >= SLICE_PARTS and changed > 0)


def _in_parts(spans: Sequence[EndedSpan]) -> Iterator[Sequence[EndedSpan]]:
    """Yields spans, so many at a time that looking at their ids takes a millisecond or so."""
    part: list[EndedSpan] = []
    jobs = 0
    for span in spans:
        part.append(span)
        jobs += span.count
        if jobs >= PART_JOBS:
            yield part
            part, jobs = [], 0
    if part:
        yield part


async def in_steps(items: Iterable[T]) -> AsyncIterator[T]:
    """Yields the items, and yields to the loop after every `STEP_ITEMS` of them."""
    for number, item in enumerate(items, start=1):
        yield item
        if number % STEP_ITEMS == 0:
            await asyncio.sleep(0)
