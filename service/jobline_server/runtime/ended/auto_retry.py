"""Puts dead jobs back whose queue retries them by itself, a slice at a time.

When a job is retried is decided as it dies, and kept with it; whether it still is, as the time has
come. Jobs for which the queue or the server has no room stay dead, and are tried again later.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

from jobline_server.engine.decide.admin import decide_retry
from jobline_server.engine.room import fitting
from jobline_server.engine.values import JobState
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended import due
from jobline_server.runtime.ended.ended_jobs import EndedJobs, LookupResult
from jobline_server.runtime.ended.retention import in_steps
from jobline_server.runtime.slots import ShardSlot
from jobline_server.storage.ended_store import BEFORE_ALL

# The most jobs in a slice; the loop is free between look-ups, which have fewer.
SLICE_JOBS = 1_000

Position = tuple[int, int]
"""Where a slice ends."""


class RetrySlice(NamedTuple):
    """How many jobs were put back, how many that are due were left, and the key behind which the
    next slice begins; None after the last.
    """

    retried: int
    left: int
    after: Position | None


class AutoRetries:
    """Finds and retries dead jobs that are due."""

    def __init__(self, core: Core, ended: EndedJobs) -> None:
        self._core = core
        self._ended = ended
        self.hints = ended.hints

    async def queues(self) -> AsyncIterator[str]:
        """Yields the queues that retry dead jobs."""
        names = [name for slot in self._core.slots for name in slot.shard.queues]
        async for name in in_steps(names):
            if self.is_on(name):
                yield name

    def is_on(self, queue: str) -> bool:
        """Returns whether a queue retries dead jobs now."""
        found = self._core.slots.find_queue(queue)
        return found is not None and found.settings.dead_letters.auto_retry is not None

    async def write(self) -> None:
        """Writes what has ended, for the slices that follow."""
        await self._ended.write()

    async def next_ms(self, queue: str, now_ms: int) -> int | None:
        """Returns when the next job of a queue is due after now."""
        return await due.next_retry_ms(self._ended.ended_store, queue, now_ms=now_ms)

    async def retry(self, queue: str, *, now_ms: int, after: Position | None = None) -> RetrySlice:
        """Puts back a slice of the jobs of a queue that are due. Of what was not written yet it
        sees changes alone, so that nothing is found twice.
        """
        slot = self._core.slots.find_by_queue(queue)
        if slot is None:
            return RetrySlice(0, 0, None)
        async with self._ended.changing:
            await self._ended.write_changes()
            spans = await due.past_retry(
                self._ended.ended_store,
                queue,
                now_ms=now_ms,
                after=after or BEFORE_ALL,
                limit=SLICE_JOBS,
            )
            retried = 0
            ids = [span.first_id for span in spans]
            async for look in self._ended.look_up(ids, are_written=True):
                retried += self._retry(slot, look)
                self._core.after_decision(slot)
            await self._core.commits.wait()
        is_full = len(spans) >= SLICE_JOBS
        return RetrySlice(retried, len(spans) - retried, spans[-1].key() if is_full else None)

    def _retry(self, slot: ShardSlot, look: LookupResult) -> int:
        dead = [kept for kept in look.kept.values() if kept.state is JobState.DEAD]
        fits, _ = fitting(slot.shard, [kept.record for kept in dead])
        ended = [(kept.record, kept.state) for kept in dead if kept.record.id in fits]
        left = decide_retry(slot.shard, self._core.now(), ended, automatic=True)
        return len(ended) - len(left)
