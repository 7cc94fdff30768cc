"""The loop around periodic tasks: what becomes of their failures."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

import pytest

from jobline_server.background.periodic import Background, Counts, KnownFailure
from jobline_server.engine.values import Now
from jobline_server.runtime.loops import FAILURES_CRITICAL
from tests.unit.background.conftest import Keeping

RUNS_OFTEN = 3


@dataclass
class Task:
    """A task that raises what it is given, or else says that it did something."""

    error: Exception | None = None
    is_due: bool = True
    name: str = "a task"
    every_seconds: float = 0.0
    runs: int = 0
    ran_often: asyncio.Event = field(default_factory=asyncio.Event)

    async def run_once(self, _now: Now) -> Counts | None:
        """Runs once."""
        self.runs += 1
        if self.runs == RUNS_OFTEN:
            self.ran_often.set()
        if self.error is not None:
            raise self.error
        return {"done": 1} if self.is_due else None


async def test_a_task_that_fails_again_and_again_leaves_the_server_well(
    keeping: Keeping, caplog: pytest.LogCaptureFixture
) -> None:
    """A target of backups that is away took a queue that works out of its Service, and had its pod
    restarted. It is heard of: one CRITICAL line, and counts.
    """
    task = Task(LookupError("a mistake of ours"))
    background = Background([task], keeping.runtime.core)
    for _ in range(FAILURES_CRITICAL + 1):
        await background.run_once(task)
    assert (keeping.runtime.failing(), keeping.runtime.broken()) == ([], [])
    work = background.records[task.name].work
    assert (work.failures, work.failures_in_a_row) == (FAILURES_CRITICAL + 1, FAILURES_CRITICAL + 1)
    assert [line.levelno for line in caplog.records].count(logging.CRITICAL) == 1
    task.error = None
    await background.run_once(task)
    assert (work.failures_in_a_row, background.records[task.name].counts) == (0, {"done": 1})


async def test_a_run_without_anything_to_do_is_neither_a_success_nor_a_failure(
    keeping: Keeping,
) -> None:
    """It says nothing of whether the work can be done."""
    task = Task(LookupError())
    background = Background([task], keeping.runtime.core)
    await background.run_once(task)
    task.error, task.is_due = None, False
    await background.run_once(task)
    record = background.records[task.name]
    assert (record.work.failures_in_a_row, record.runs, record.counts) == (1, 2, {})
    task.is_due = True
    await background.run_once(task)
    assert record.work.failures_in_a_row == 0


async def test_a_failure_whose_reason_is_known_has_no_stack(
    keeping: Keeping, caplog: pytest.LogCaptureFixture
) -> None:
    """The task has logged it, so only the fifth in a row has a line: with the reason."""
    task = Task(KnownFailure("the destination is gone"))
    background = Background([task], keeping.runtime.core)
    for _ in range(FAILURES_CRITICAL + 1):
        await background.run_once(task)
    assert background.records[task.name].work.failures == FAILURES_CRITICAL + 1
    (line,) = caplog.records
    assert (line.levelno, line.exc_info) == (logging.CRITICAL, None)
    assert "the destination is gone" in line.getMessage()


async def test_tasks_run_until_they_are_stopped(keeping: Keeping) -> None:
    """One that fails does not end."""
    task = Task(LookupError())
    background = Background([task], keeping.runtime.core)
    background.start()
    background.start()
    async with asyncio.timeout(20):
        await task.ran_often.wait()
    await background.stop()
    record = background.records[task.name]
    assert record.work.failures == record.runs == task.runs
