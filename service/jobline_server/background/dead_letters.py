"""Periodic task: puts dead jobs back by themselves, in queues whose settings say so.

A queue is checked only when a job of it may be due: at the time of its next one, or when its
settings changed. Jobs that are due and found no room are tried again after a minute.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush

from jobline_server.background.periodic import Counts
from jobline_server.engine.limits import MINUTE_MS
from jobline_server.engine.values import Now
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.auto_retry import AutoRetries, Position

# The pause while dead jobs wait for their time, and while none do.
EVERY_SECONDS = 1.0
AT_REST_SECONDS = 5.0
# The pause after a run that did not finish.
AGAIN_SECONDS = 0.05
AGAIN_MS = 1 * MINUTE_MS
# Queues of one run; the others follow in the next.
QUEUES_MAX = 100


@dataclass(slots=True)
class RetryDeadJobs:
    """Retries dead jobs that are due."""

    core: Core
    retries: AutoRetries
    name: str = "dead_letters"
    _is_opened: bool = field(default=False, init=False)
    _is_unfinished: bool = field(default=False, init=False)
    _due: dict[str, int] = field(default_factory=dict, init=False)
    _heap: list[tuple[int, str]] = field(default_factory=list, init=False)
    _after: dict[str, Position] = field(default_factory=dict, init=False)
    _was_cut_off: bool = field(default=False, init=False)

    @property
    def every_seconds(self) -> float:
        """The pause; shorter when the last run did not finish."""
        if self._is_unfinished:
            return AGAIN_SECONDS
        return EVERY_SECONDS if self._due else AT_REST_SECONDS

    async def run_once(self, now: Now) -> Counts | None:
        """Retries a slice of the due jobs of each queue that has some; returns how many. None while
        queues wait for their next try whose last one failed.
        """
        await self._take_hints()
        goes_on, self._is_unfinished = self._is_unfinished, False
        queues = [] if self.core.commits.disk_full else self._due_queues(now.wall_ms)
        if self._was_cut_off and not queues:
            return None
        self._was_cut_off = True
        # What goes on where the last run stopped has enough to do, twenty times a second: see
        # `RetentionTask`.
        if queues and not goes_on:
            await self.retries.write()
        retried = 0
        for queue in queues:
            retried += await self._retry(queue, now.wall_ms)
        self._was_cut_off = False
        return {"retried": retried}

    async def next_ms(self, now: Now) -> int | None:
        """Returns when the next dead job is retried, or found to have no room again."""
        await self._take_hints()
        return now.wall_ms if self._is_unfinished else min(self._due.values(), default=None)

    async def _take_hints(self) -> None:
        if not self._is_opened:
            async for queue in self.retries.queues():
                self._schedule(queue, 0)
            self._is_opened = True
        for queue, first_ms in self.retries.hints.take_retries().items():
            if self.retries.is_on(queue):
                self._schedule(queue, min(first_ms, self._due.get(queue, first_ms)))

    def _schedule(self, queue: str, due_ms: int) -> None:
        if self._due.get(queue) != due_ms:
            self._due[queue] = due_ms
            heappush(self._heap, (due_ms, queue))

    def _due_queues(self, now_ms: int) -> list[str]:
        """Returns queues that are due. They stay scheduled until they were checked."""
        queues: list[str] = []
        while self._heap and self._heap[0][0] <= now_ms:
            if len(queues) == QUEUES_MAX:
                self._is_unfinished = True
                break
            due_ms, queue = heappop(self._heap)
            if self._due.get(queue) == due_ms:
                del self._due[queue]
                queues.append(queue)
        # An exception in a check loses none of them.
        for queue in queues:
            self._schedule(queue, now_ms + AGAIN_MS)
        return queues

    async def _retry(self, queue: str, now_ms: int) -> int:
        if not self.retries.is_on(queue):
            del self._due[queue]
            self._after.pop(queue, None)
            return 0
        after = self._after.pop(queue, None)
        retried, left, resume = await self.retries.retry(queue, now_ms=now_ms, after=after)
        if resume is not None:
            # What was left once is not looked at again before the others.
            self._after[queue] = resume
            self._is_unfinished = True
            self._schedule(queue, now_ms)
            return retried
        next_ms = await self.retries.next_ms(queue, now_ms)
        again_ms = now_ms + AGAIN_MS if left or after is not None else next_ms
        if again_ms is None:
            del self._due[queue]
        else:
            self._schedule(queue, again_ms if next_ms is None else min(again_ms, next_ms))
        return retried
