"""The loop around every periodic task: run, count, wait.

A task that fails is retried at its next time; its failures are logged and counted like those of
all work of the server (`runtime.loops`). They never make the server unhealthy, however many there
are: no caller and no worker waits for a task, so the queue works without it, and would not work
while the server is restarted for its sake. `/metrics` has them, as `jobline_beat_…`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from jobline_server.engine.values import Now
from jobline_server.runtime.core import Core
from jobline_server.runtime.loops import Record
from jobline_server.runtime.waiting import is_set_by_tick, is_set_within

Counts = Mapping[str, int]


class KnownFailure(Exception):
    """The work cannot be done, for a reason that the task knows and has logged: no fault of the
    server. It is counted like others, and its stack is not logged.
    """


class PeriodicTask(Protocol):
    """Background work that runs again and again."""

    @property
    def name(self) -> str:
        """Its name in logs and metrics."""

    @property
    def every_seconds(self) -> float:
        """The pause between the end of one run and the start of the next."""

    async def run_once(self, now: Now) -> Counts | None:
        """Does the work that is due; returns counts of what it did, by name. None: nothing was
        tried, so that a row of failures goes on.
        """


@runtime_checkable
class TimedTask(PeriodicTask, Protocol):
    """Background work whose time is known: where a clock is moved by hand, it is run on the way."""

    async def next_ms(self, now: Now) -> int | None:
        """Returns the wall time at which the next run may find something to do, not after now if it
        may now; None if nothing is known to come.
        """


@dataclass(slots=True)
class TaskRecord:
    """Runs, failures and counts of one task, for `/metrics`."""

    work: Record
    runs: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    running: asyncio.Lock = field(default_factory=asyncio.Lock)


class Background:
    """Runs periodic tasks, each in its own asyncio task. `start` and `stop` may be called twice, or
    never.
    """

    def __init__(self, tasks: list[PeriodicTask], core: Core) -> None:
        # Records of their own: those of `core.loops` are about work that may be vital.
        self.records = {task.name: TaskRecord(Record(task.name, is_vital=False)) for task in tasks}
        self.tasks = tasks
        self._now = core.clock.now
        self._heartbeat = core.heartbeat
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = asyncio.Event()

    def start(self) -> None:
        """Starts the tasks, unless they are running."""
        if not self._tasks:
            self._stopping.clear()
            loop = asyncio.get_running_loop()
            self._tasks = [loop.create_task(self._run(task)) for task in self.tasks]

    async def stop(self) -> None:
        """Waits for runs under way, and starts no more."""
        self._stopping.set()
        tasks, self._tasks = self._tasks, []
        await asyncio.gather(*tasks)

    async def _run(self, task: PeriodicTask) -> None:
        while not await self._stops_within(task.every_seconds):
            await self.run_once(task)

    async def _stops_within(self, seconds: float) -> bool:
        # All in one turn of the loop, while it has no other work.
        wait = is_set_by_tick if self._heartbeat.resting else is_set_within
        return await wait(self._stopping, seconds)

    async def run_once(self, task: PeriodicTask) -> None:
        """Runs a task once, behind a run under way; counts it, and records a failure instead of
        raising it.
        """
        record = self.records[task.name]
        async with record.running:
            await self._run_once(task, record)

    async def _run_once(self, task: PeriodicTask, record: TaskRecord) -> None:
        record.runs += 1
        try:
            counts = await task.run_once(self._now())
        except KnownFailure as failure:
            record.work.failed(failure, is_known=True)
            return
        except Exception as error:  # noqa: BLE001  # the next run may do better
            record.work.failed(error)
            return
        if counts is None:
            return
        record.work.worked()
        for name, count in counts.items():
            record.counts[name] = record.counts.get(name, 0) + count
