"""Retention: ended jobs become STALE, then are deleted; both are facts, a slice at a time.

How long: the queue's own age, else an hour for completed, cancelled and expired jobs beyond the
newest thousand, and seven days for dead ones. How many: the queue's own count, else a hundred
thousand completed jobs and a gibibyte of dead ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.background.beat import Counts
from jobline_server.engine import limits
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import ENDED_STATES, JobState, Now
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended import EndedJobs

# Runs of ids that one slice takes.
SLICE_RUNS = 200
NO_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True)
class RetentionBeat:
    """Ages and evicts ended jobs."""

    core: Core
    ended: EndedJobs
    name: str = "retention"
    every_seconds: float = 10.0

    async def run_once(self, now: Now) -> Counts:
        """One slice of each queue and state."""
        counts = {"staled": 0, "deleted": await self._delete(now), "evicted": 0}
        for shard in self.core.shards:
            for queue in list(shard.queues.values()):
                for state in sorted(ENDED_STATES):
                    if queue.ended.get(state):
                        counts["staled"] += await self._stale(queue, state, now)
                        counts["evicted"] += await self._evict(queue, state)
        return counts

    async def _stale(self, queue: Queue, state: JobState, now: Now) -> int:
        before_ms = now.wall_ms - _age_ms(queue, state)
        keep = limits.KEEP_NEWEST if state is JobState.COMPLETED else 0
        await self.ended.write()
        async with self.ended.changing:
            spans = await self.ended.finished.due_for_stale(
                queue.name, state, before_ms, keep, SLICE_RUNS
            )
            return await self.ended.make_stale(queue.name, state, spans)

    async def _evict(self, queue: Queue, state: JobState) -> int:
        keep_count, keep_bytes = _kept(queue, state)
        if keep_bytes == NO_LIMIT and queue.ended[state] <= keep_count:
            return 0
        async with self.ended.changing:
            spans = await self.ended.finished.evictable(
                queue.name, state, keep_count, keep_bytes, SLICE_RUNS
            )
            return await self.ended.delete(queue.name, state, spans)

    async def _delete(self, now: Now) -> int:
        before_ms = now.wall_ms - limits.DELETE_AFTER_MS
        deleted = 0
        async with self.ended.changing:
            spans = await self.ended.finished.due_for_deletion(before_ms, SLICE_RUNS)
            for queue in sorted({span.queue for span in spans}):
                own = [span for span in spans if span.queue == queue]
                deleted += await self.ended.delete(queue, JobState.STALE, own)
        return deleted


def _kept(queue: Queue, state: JobState) -> tuple[int, int]:
    """How many jobs and bytes a queue keeps of those that ended in a state."""
    own = queue.settings.retention.count
    if state is JobState.COMPLETED:
        return limits.COMPLETED_KEPT_MAX if own is None else own, NO_LIMIT
    if state is JobState.DEAD:
        return NO_LIMIT if own is None else own, limits.DEAD_KEPT_BYTES_MAX
    return NO_LIMIT, NO_LIMIT


def _age_ms(queue: Queue, state: JobState) -> int:
    own = queue.settings.retention.age_ms
    if own is not None:
        return own
    dead = state is JobState.DEAD
    return limits.STALE_AFTER_DEAD_MS_DEFAULT if dead else limits.STALE_AFTER_MS_DEFAULT
