"""Retention: ended jobs become STALE, then are deleted; both are facts, a slice at a time.

How long: the queue's own age, else an hour for completed, cancelled and expired jobs beyond the newest
thousand, and seven days for dead ones. How many: the queue's own count, else a hundred thousand completed jobs
and a gibibyte of dead ones.
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


@dataclass(frozen=True, slots=True)
class RetentionBeat:
    """Ages and evicts ended jobs."""

    core: Core
    ended: EndedJobs
    name: str = "retention"
    every_seconds: float = 10.0

    async def run_once(self, now: Now) -> Counts:
        """One slice of each queue and state."""
        counts = {"staled": 0, "deleted": 0, "evicted": 0}
        for shard in self.core.shards:
            for queue in list(shard.queues.values()):
                for state in sorted(ENDED_STATES):
                    if queue.ended.get(state):
                        counts["staled"] += await self._stale(queue, state, now)
                        counts["evicted"] += await self._evict(queue, state)
                if queue.ended.get(JobState.STALE):
                    counts["deleted"] += await self._delete(queue, now)
        return counts

    async def _stale(self, queue: Queue, state: JobState, now: Now) -> int:
        before_ms = now.wall_ms - _age_ms(queue, state)
        keep = limits.KEEP_NEWEST if state is JobState.COMPLETED else 0
        async with self.ended.changing:
            runs = await self.ended.due_for_stale(queue.name, state, before_ms, keep, SLICE_RUNS)
            return await self.ended.make_stale(queue.name, state, runs)

    async def _evict(self, queue: Queue, state: JobState) -> int:
        count = queue.settings.retention.count
        if state is JobState.DEAD:
            keep_count, keep_bytes = count, limits.DEAD_KEPT_BYTES_MAX
        elif state is JobState.COMPLETED:
            keep_count, keep_bytes = count or limits.COMPLETED_KEPT_MAX, None
        else:
            return 0
        if keep_bytes is None and keep_count is not None and queue.ended[state] <= keep_count:
            return 0
        async with self.ended.changing:
            runs = await self.ended.evictable(queue.name, state, keep_count, keep_bytes, SLICE_RUNS)
            return await self.ended.delete(queue.name, state, runs)

    async def _delete(self, queue: Queue, now: Now) -> int:
        before_ms = now.wall_ms - limits.DELETE_AFTER_MS
        async with self.ended.changing:
            runs = await self.ended.due_for_deletion(queue.name, before_ms, SLICE_RUNS)
            return await self.ended.delete(queue.name, JobState.STALE, runs)


def _age_ms(queue: Queue, state: JobState) -> int:
    own = queue.settings.retention.age_ms
    if own is not None:
        return own
    dead = state is JobState.DEAD
    return limits.STALE_AFTER_DEAD_MS_DEFAULT if dead else limits.STALE_AFTER_MS_DEFAULT
