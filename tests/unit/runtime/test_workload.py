"""Workload: what keeps workers busy, or would."""

from __future__ import annotations

from dataclasses import replace

from jobline_server.engine.commands import Pull, Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobOptions
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.workload import longest_wait_ms, startable, workload


async def push(runtime: Runtime, jobs: int, options: JobOptions = DEFAULT_OPTIONS) -> Queue:
    """Jobs that are on disk; returns their queue."""
    payloads = Payloads.of([b"x"] * jobs)
    command = Push("mail", options, level=AckLevel.BUFFERED, payloads=payloads)
    await runtime.pushes.push(command)
    await runtime.core.commits.commit_once()
    queue = runtime.core.slots.find_queue("mail")
    assert queue is not None
    return queue


async def test_jobs_that_run_are_work_and_can_be_started_no_more(runtime: Runtime) -> None:
    """Both count what is READY."""
    queue = await push(runtime, 3)
    await runtime.pulls.pull(Pull((("mail", 1),), max_jobs=1, wait_ms=0, worker="w"))

    assert (startable(queue), workload(queue)) == (2, 3)
    assert workload(None) == 0


async def test_the_longest_wait_is_that_of_the_oldest_ready_job(runtime: Runtime) -> None:
    """Whatever its priority."""
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    await push(runtime, 1)
    clock.advance(5_000)
    queue = await push(runtime, 1, replace(DEFAULT_OPTIONS, priority=9))
    clock.advance(1_000)

    assert longest_wait_ms(queue, runtime.core.wall_ms()) == 6_000
    assert longest_wait_ms(queue, 0) == 0
    assert longest_wait_ms(None, runtime.core.wall_ms()) == 0
    queue.paused = True
    assert longest_wait_ms(queue, runtime.core.wall_ms()) == 0
