"""The loop around every beat: run, count, wait; a beat that fails goes on being tried, and is
heard of as all work of the server is (`runtime.loops`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from jobline_server.engine.values import Now
from jobline_server.runtime.core import Core
from jobline_server.runtime.loops import Record

Counts = Mapping[str, int]


class PeriodicTask(Protocol):
    """Background work with a rhythm. Public: its name in logs and metrics, and seconds between two
    runs.
    """

    @property
    def name(self) -> str:
        """What it is called in logs and metrics."""

    @property
    def every_seconds(self) -> float:
        """The pause between the end of one run and the next."""

    async def run_once(self, now: Now) -> Counts:
        """Does what is due, and says how much of what."""


@dataclass(slots=True)
class TaskRecord:
    """How a beat has been doing, for `/metrics`."""

    work: Record
    runs: int = 0
    counts: dict[str, int] = field(default_factory=dict)


class Background:
    """Runs tasks, each in its own task. `start` and `stop` may be called twice, or never."""

    def __init__(self, tasks: list[PeriodicTask], core: Core) -> None:
        self.records = {task.name: TaskRecord(core.loops.record(task.name)) for task in tasks}
        self.tasks = tasks
        self._now = core.clock.now
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = asyncio.Event()

    def start(self) -> None:
        """Starts what is not running."""
        if not self._tasks:
            self._stopping.clear()
            loop = asyncio.get_running_loop()
            self._tasks = [loop.create_task(self._run(task)) for task in self.tasks]

    async def stop(self) -> None:
        """Lets runs that are under way finish, and starts none."""
        self._stopping.set()
        tasks, self._tasks = self._tasks, []
        await asyncio.gather(*tasks)

    async def _run(self, task: PeriodicTask) -> None:
        while not await self._stops_within(task.every_seconds):
            await self.run_once(task)

    async def run_once(self, task: PeriodicTask) -> None:
        """One run of a task, counted."""
        record = self.records[task.name]
        record.runs += 1
        try:
            counts = await task.run_once(self._now())
        except Exception as error:  # noqa: BLE001  # the next run may do better
            record.work.failed(error)
            return
        record.work.worked()
        for name, count in counts.items():
            record.counts[name] = record.counts.get(name, 0) + count

    async def _stops_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return False
        return True
