"""Retention: ended jobs become STALE, then are deleted; both are facts, a slice at a time.

How long until they are STALE: a job's own age, else the queue's, else an hour for cancelled and
expired jobs and for completed ones beyond the newest thousand, and seven days for dead ones. An
hour later they are deleted.

How many: the queue's own count of each state, else a hundred thousand completed jobs and a gibibyte
of dead ones; this holds for all jobs, and the oldest go first. A job that has a count of its own
goes as soon as so many are kept that ended after it. Neither is STALE before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from jobline_server.background.beat import Counts
from jobline_server.engine import limits
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import ENDED_STATES, JobState, Now
from jobline_server.runtime.ageing import Ageing, Slice
from jobline_server.runtime.core import Core

EVERY_SECONDS = 10.0
# After a run that left something: a queue whose jobs end one by one would outrun a slice every ten
# seconds.
AGAIN_SECONDS = 0.05
NO_LIMIT = 1 << 62


@dataclass(slots=True)
class RetentionBeat:
    """Ages and evicts ended jobs."""

    core: Core
    ageing: Ageing
    name: str = "retention"
    _left_some: bool = field(default=False, init=False)

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
        for shard in self.core.shards:
            for queue in list(shard.queues.values()):
                for state in sorted(ENDED_STATES):
                    if _may_age(queue, state):
                        yield "staled", await self._stale(queue, state, now)
                    if _may_be_too_many(queue, state):
                        yield "evicted", await self._evict(queue, state)
        async for done in self.ageing.evict_by_own_count():
            yield "evicted", done

    async def _stale(self, queue: Queue, state: JobState, now: Now) -> Slice:
        age_ms, keep_newest = _age(queue, state)
        before_ms = now.wall_ms - age_ms
        return await self.ageing.stale_by_age(
            queue.name, state, ended_before_ms=before_ms, keep_newest=keep_newest
        )

    async def _evict(self, queue: Queue, state: JobState) -> Slice:
        keep_count, keep_bytes = _kept(queue, state)
        return await self.ageing.evict(
            queue.name, state, keep_count=keep_count, keep_bytes=keep_bytes
        )


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
