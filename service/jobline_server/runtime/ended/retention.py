"""Ageing: ended jobs that are due become STALE or are deleted, a slice at a time.

How long jobs stay and how many is the caller's to say; what jobs say themselves stands with them
in the finished file. A slice is looked for and changed while nobody else changes ended jobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from jobline_server.engine.decide.admin import decide_evict
from jobline_server.engine.values import JobState
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.ended_jobs import EndedJobs
from jobline_server.runtime.ended.retention_hints import Place
from jobline_server.storage.ended_store import EndedSpan, OwnCount

# Parts of runs that one slice takes.
SLICE_PARTS = 1_000
# Queues and places of a step, of which the file is asked nothing: each takes some microseconds.
STEP_PLACES = 1_000
# More than any job says of itself.
ABOVE_COUNTS = 1 << 40

T = TypeVar("T")

LookupResult = Callable[[int], Awaitable[Sequence[EndedSpan]]]
"""Finds what is due, so many parts at most."""
Change = Callable[[Sequence[EndedSpan]], Awaitable[int]]


class Slice(NamedTuple):
    """How many jobs were changed, and whether there may be more."""

    jobs: int
    is_full: bool


class EndedRetention:
    """Slices of ended jobs, looked for and changed."""

    def __init__(self, core: Core, ended: EndedJobs) -> None:
        self._core = core
        self._ended = ended
        self._ended_store = ended.ended_store
        self.places = ended.places

    async def stale_by_age(
        self, queue: str, state: JobState, *, ended_before_ms: int, keep_newest: int
    ) -> Slice:
        """Jobs without an age of their own become STALE, all but the newest."""
        ended_store = self._ended_store
        look = partial(ended_store.due_for_stale, queue, state, ended_before_ms, keep_newest)
        return await self._slice(look, self._ended.make_stale)

    async def stale_by_own_age(self, now_ms: int) -> Slice:
        """Jobs whose own age is over become STALE, of all queues."""
        look = partial(self._ended_store.due_by_own_age, now_ms)
        return await self._slice(look, self._ended.make_stale)

    async def delete_stale(self, stale_before_ms: int) -> Slice:
        """What has been STALE for long enough is deleted, of all queues."""
        look = partial(self._ended_store.due_for_deletion, stale_before_ms)
        return await self._slice(look, self._ended.delete)

    async def evict(
        self, queue: str, state: JobState, *, keep_count: int, keep_bytes: int
    ) -> Slice:
        """The oldest jobs of a queue are deleted that are too many, or too large together."""
        look = partial(self._ended_store.evictable, queue, state, keep_count, keep_bytes)
        return await self._slice(look, self._evict)

    async def note_all_queues(self) -> None:
        """Notes that something may be due wherever jobs are kept."""
        queues = [queue for slot in self._core.slots for queue in slot.shard.queues.values()]
        async for queue in in_steps(queues):
            self.places.note_queue(queue.name, queue.kept())

    async def oldest_ms(self, place: Place) -> int | None:
        """When the oldest job of a place ended that has no age of its own."""
        return await self._ended_store.oldest_ms(*place)

    async def counted_places(self) -> set[Place]:
        """Where jobs have counts of their own."""
        places: set[Place] = set()
        own = None
        while (own := await self._ended_store.next_own_count(own)) is not None:
            places.add((own.queue, JobState(own.state)))
            # The next one of another place: nobody counts less than nothing.
            own = OwnCount(own.queue, own.state, -1)
        return places

    async def evict_by_own_count(self, place: Place) -> AsyncIterator[Slice]:
        """Evicts jobs of a place whose own count is reached: that many kept ones ended later.
        Yields a slice a count.
        """
        own = await self._ended_store.next_own_count(OwnCount(*place, ABOVE_COUNTS))
        while own is not None and (own.queue, own.state) == place:
            look = partial(self._ended_store.beyond_own_count, own)
            yield await self._slice(look, self._evict)
            own = await self._ended_store.next_own_count(own)

    async def _evict(self, spans: Sequence[EndedSpan]) -> int:
        return await self._ended.delete(spans, decide_evict)

    async def _slice(self, look: LookupResult, change: Change) -> Slice:
        """What was changed before is in the file before the look, so nothing is found twice."""
        async with self._ended.changing:
            await self._ended.write()
            spans = await look(SLICE_PARTS)
            return Slice(await change(spans), is_full=len(spans) >= SLICE_PARTS)


async def in_steps(items: Iterable[T]) -> AsyncIterator[T]:
    """The items, with the loop free each time that some were worked off."""
    for number, item in enumerate(items, start=1):
        yield item
        if number % STEP_PLACES == 0:
            await asyncio.sleep(0)
