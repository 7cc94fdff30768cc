"""Moves a clock that stands still otherwise, from one moment at which something is due to the next.

At each of these moments everything that is due is done and on disk before the clock goes on: timers
and schedules of the engine, what they cause, periodic tasks, and the jobs that connected workers
were handed. So what a test sees after a year is what a server would have done in that year.

Two things need real time in between. Frames of workers cannot come while the clock moves, so each
worker with an open stream counts as heard. And a job that a worker has is waited for, up to a limit
once, because a handler may be meant to hang.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from jobline_server.background.periodic import Background, TimedTask
from jobline_server.dev.workers import Lease, Workers
from jobline_server.engine.values import Now
from jobline_server.rpc.admission import ending
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.runtime import Runtime

# Real time that workers may take for what they were handed at one moment.
WORK_MS_DEFAULT = 1_000
# How far the clock goes where something is due and cannot be done: further each time in a row.
STUCK_MS_MAX = 1_000


class TimeTravel:
    """The only one who moves the clock of a server."""

    def __init__(self, runtime: Runtime, background: Background, clock: ManualClock) -> None:
        self._runtime = runtime
        self._background = background
        self._clock = clock
        self._tasks = [task for task in background.tasks if isinstance(task, TimedTask)]
        self._moving = asyncio.Lock()
        self._is_over = False
        self._commits = 0
        self._due: tuple[int, dict[str, int | None]] | None = None
        """When tasks are due by name, and after which commit that was found."""
        self.workers = Workers(runtime)
        runtime.core.listen("time_travel", self._on_committed)

    def _on_committed(self, batches: Sequence[CommittedBatch]) -> None:
        # Each look of the timers is told of, also where nothing happened.
        self._commits += any(batch.applied for batch in batches)

    def now(self) -> Now:
        """Returns the present time."""
        return self._clock.now()

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        async with self._moving:
            if self._is_over:
                raise ending()
            yield

    async def end(self) -> None:
        """Waits for the move under way; those behind it are refused, as their server stops."""
        self._is_over = True
        async with self._moving:
            pass

    async def advance(self, milliseconds: int, *, work_ms: int = WORK_MS_DEFAULT) -> None:
        """Moves the clock by so much, and does all that becomes due on the way. Another call waits
        for this one; cancelled, it leaves the clock where it has come.
        """
        async with self._turn():
            end_ms = self._clock.wall_ms + milliseconds
            await self._advance_to(end_ms, work_ms)

    async def advance_to(self, wall_ms: int, *, work_ms: int = WORK_MS_DEFAULT) -> bool:
        """Moves the clock to a moment; returns False, and does nothing, if that is over."""
        async with self._turn():
            if wall_ms < self._clock.wall_ms:
                return False
            await self._advance_to(wall_ms, work_ms)
            return True

    async def _advance_to(self, end_ms: int, work_ms: int) -> None:
        outlasting: set[Lease] = set()
        stuck = 0
        await self._settle(work_ms, outlasting)
        while (left_ms := end_ms - self._clock.wall_ms) > 0:
            due_ms = await self._until_next()
            stuck = 0 if due_ms is None or due_ms > 0 else stuck + 1
            if stuck:
                due_ms = min(1 << (stuck - 1), STUCK_MS_MAX)
            await self._move(left_ms if due_ms is None else min(due_ms, left_ms))
            await self._settle(work_ms, outlasting)

    async def _move(self, milliseconds: int) -> None:
        timer_loop, core = self._runtime.timer_loop, self._runtime.core
        async with timer_loop.running:
            self._clock.advance(milliseconds)
            self._hear_workers()
        # The timer loop was to look again at a time that may be over.
        core.timers.set()

    def _hear_workers(self) -> None:
        """Counts workers with an open stream as heard: their frames could not come meanwhile."""
        now = self._clock.now()
        for stream in self._runtime.streams.open.values():
            if not stream.session.half_closed:
                stream.session.handle_any(now)
                for holder in stream.holders.values():
                    holder.renew(now.mono_ms)

    async def _until_next(self) -> int | None:
        """Returns in how many milliseconds anything is due; None if nothing is."""
        now = self._clock.now()
        times = [self._runtime.timer_loop.next_due()]
        times += [
            None if due_ms is None else max(due_ms - now.wall_ms, 0)
            for due_ms in (await self._times()).values()
        ]
        return min((wait_ms for wait_ms in times if wait_ms is not None), default=None)

    async def _times(self) -> dict[str, int | None]:
        """Returns when periodic tasks are due, by name."""
        commits, now = self._commits, self._clock.now()
        if self._due is None or self._due[0] != commits:
            self._due = commits, {task.name: await task.next_ms(now) for task in self._tasks}
        return self._due[1]

    async def _settle(self, work_ms: int, outlasting: set[Lease]) -> None:
        """Does all that is due at this moment, with what that causes. Workers that go on without an
        end, as each job pushes the next, are left alone after `work_ms`.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + work_ms / 1_000
        while True:
            commits = self._commits
            await self._run_tasks()
            await self._run_timers()
            await self.workers.wait_done(until, outlasting)
            await self._runtime.core.commits.wait()
            if commits == self._commits:
                return
            if loop.time() >= until and await self._until_next() != 0:
                return

    async def _run_timers(self) -> None:
        core, timer_loop = self._runtime.core, self._runtime.timer_loop
        while True:
            async with timer_loop.running:
                has_more = timer_loop.run_due()
            commits = self._commits
            await core.commits.wait()
            while under_way := self._runtime.under_way():
                await asyncio.wait(under_way)
            if not has_more and commits == self._commits:
                return

    async def _run_tasks(self) -> None:
        """Runs the periodic tasks that are due, in their order: those first that look at a time
        that is over, such as a minute.
        """
        now = self._clock.now()
        times = await self._times()
        due = [task for task in self._tasks if _is_due(times[task.name], now)]
        for task in due:
            await self._background.run_once(task)
        if due:
            self._due = None


def _is_due(due_ms: int | None, now: Now) -> bool:
    return due_ms is not None and due_ms <= now.wall_ms
