"""Workload: what keeps workers busy, or would."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobline_server.engine.commands import Pull, Push
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.lot import Lot
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.queue import Queue
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobOptions
from jobline_server.runtime import workload as workloads
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.workload import longest_wait_ms, oldest_ready_ms, startable, workload


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


async def test_a_job_behind_a_limit_waits_too(runtime: Runtime) -> None:
    """It is READY, and late, whatever keeps it from its worker."""
    queue = await push(runtime, 1)
    pushed_ms = runtime.core.wall_ms()

    for lane in list(queue.lanes()):
        queue.close_gate(lane.key)

    assert oldest_ready_ms(queue) == pushed_ms


async def test_of_many_lanes_those_are_looked_at_that_have_jobs_for_longest(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those with the highest priorities would hide a job that others keep from its worker."""
    monkeypatch.setattr(workloads, "LANES_MAX", 2)
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    pushed_ms = runtime.core.wall_ms()
    for priority in range(5):
        queue = await push(runtime, 1, replace(DEFAULT_OPTIONS, priority=priority))
        clock.advance(1_000)

    assert oldest_ready_ms(queue) == pushed_ms


async def test_nothing_is_the_oldest_of_an_empty_queue(runtime: Runtime) -> None:
    """It is there, as a job of it is in a worker's hands."""
    queue = await push(runtime, 1)
    await runtime.pulls.pull(Pull((("mail", 1),), max_jobs=1, wait_ms=0, worker="w"))

    assert oldest_ready_ms(queue) == 0
    assert longest_wait_ms(queue, runtime.core.wall_ms()) == 0


async def test_a_look_at_a_lot_does_not_walk_past_its_cancelled_jobs(runtime: Runtime) -> None:
    """All its jobs wait since the same moment. With 999 of 1,000 cancelled in each of 1,000 lanes
    the first look was one step of 100 ms.
    """
    queue = await push(runtime, 3)
    pushed_ms = runtime.core.wall_ms()
    (lane,) = queue.lanes()
    (lot,) = lane
    assert isinstance(lot, Lot)
    shard = runtime.core.slots.of_queue("mail").shard
    decide_cancel(shard, runtime.core.now(), [lot.first_id, lot.first_id + 1])

    assert oldest_ready_ms(queue) == pushed_ms
    assert lot.cursor == 0
