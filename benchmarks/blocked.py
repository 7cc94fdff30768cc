"""P12: a hundred thousand jobs that wait for others. No step of the loop grows with their number.

The runtime runs in this process, without a wire. The measures are the longest step of the loop, in
processor time of its thread, and what each job costs beside one of fewer.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from time import perf_counter, thread_time
from typing import Any

from benchmarks.bench import Bench
from benchmarks.bodies import PAYLOAD
from benchmarks.figures import Figure, Unit, at_most
from benchmarks.operators import QUEUE, STEP_SECONDS_MAX, runtime_at_work
from jobline_server import memory
from jobline_server.engine.commands import Push
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.rules import DependencyPolicy, JobRules
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.values import AckLevel, JobOptions, JobState
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit, Selection

JOBS = 100_000
FEW = 10_000
BATCH = 1_000
# So many jobs that one waits for, where each waits for several.
PARENTS = 10
# Parents of one job are so many apart where neighbours share none.
STEP = BATCH // PARENTS
# What a job costs more among many than among few.
FLAT_MAX = 2.0
FAILS = JobOptions(rules=JobRules(on_dependency_failure=DependencyPolicy.FAIL))
GOES_ON = JobOptions(rules=JobRules(on_dependency_failure=DependencyPolicy.IGNORE))

Fill = Callable[[Runtime, int], Awaitable[int]]
"""Pushes so many jobs that wait; returns the job that all of them wait for in the end."""


async def wait_for_others(bench: Bench) -> None:
    """P12: many children of one parent, jobs with several parents, and a chain."""
    memory.tune()
    gc.enable()
    try:
        for what, fill in KINDS.items():
            few = await _measure(bench, bench.scaled(FEW), what, fill)
            await _measure(bench, bench.scaled(JOBS), what, fill, few)
        await _choose_of_many(bench)
    finally:
        gc.disable()


async def _choose_of_many(bench: Bench) -> None:
    """Adds the figure of pushes that name as many parents as a call may, and share none with their
    neighbours.
    """
    jobs = bench.scaled(FEW)
    async with runtime_at_work(bench) as runtime:

        async def push() -> None:
            for _ in range(0, jobs, BATCH):
                last = await _push(runtime, FAILS, [NO_TIES] * BATCH, [])
                ids = range(last + 1 - BATCH, last + 1)
                ties = [Ties(parents=(*ids[at::STEP],)) for at in range(STEP)] * PARENTS
                await _push(runtime, FAILS, ties, [])

        longest, seconds, _ = await _steps(push())
    name = f"longest step of the loop: push, {jobs:,} jobs with {PARENTS} of {BATCH:,} parents each"
    ratio = f"{seconds / jobs * 1e6:.0f} µs a job"
    bench.add(Figure("P12", name, longest, Unit.TIME, at_most(STEP_SECONDS_MAX), ratio))


async def _measure(
    bench: Bench, jobs: int, what: str, fill: Fill, few: tuple[float, float] = (0.0, 0.0)
) -> tuple[float, float]:
    """Adds the figures of a push and an end, unless it is the first of two; returns what each job
    took of both.
    """
    async with runtime_at_work(bench) as runtime:
        pushed = await _steps(fill(runtime, jobs))
        parent: int = pushed[2]
        ended = await _steps(_end(runtime, parent))
    each = pushed[1] / jobs, ended[1] / jobs
    if few[0]:
        for verb, found, now, before in (
            ("push", pushed, each[0], few[0]),
            ("end of the first", ended, each[1], few[1]),
        ):
            name = f"longest step of the loop: {verb}, {jobs:,} {what}"
            ratio = f"{now * 1e6:.0f} µs a job, {now / before:.1f} × among {FEW:,}"
            target, is_flat = at_most(STEP_SECONDS_MAX), now / before <= FLAT_MAX
            figure = Figure("P12", name, found[0], Unit.TIME, target, ratio, ratio_met=is_flat)
            bench.add(figure)
    return each


async def _steps(call: Awaitable[Any]) -> tuple[float, float, Any]:
    """Returns the longest step while a call runs, how long it took, and what it returned."""
    began, before, longest = perf_counter(), thread_time(), 0.0
    task = asyncio.ensure_future(call)
    while not task.done():
        await asyncio.sleep(0)
        now = thread_time()
        before, longest = now, max(longest, now - before)
    return longest, perf_counter() - began, await task


async def _end(runtime: Runtime, parent: int) -> None:
    """Cancels a job, and waits until nobody waits for anything."""
    await runtime.bulk.cancel_jobs(Selection(ids=(parent,)), dry_run=False, audit=Audit())
    queue = runtime.core.slots.of_queue(QUEUE).shard.queues[QUEUE]
    while queue.counts[JobState.BLOCKED]:  # noqa: ASYNC110  # each step of the loop is measured
        await asyncio.sleep(0)
    await runtime.core.commits.wait()


async def _push(
    runtime: Runtime, options: JobOptions, ties: list[Ties], indexes: list[tuple[int, ...]]
) -> int:
    """Pushes a job with each of these ties; returns the id of the last one."""
    count = len(ties)
    rows = JobColumns([PAYLOAD] * count, [options] * count, ties=ties, parent_indexes=indexes)
    push = Push(QUEUE, options, rows=rows, level=AckLevel.BUFFERED)
    pushed = await runtime.pushes.push(push)
    await runtime.core.commits.wait()
    return pushed.first_id + count - 1


async def _children(runtime: Runtime, jobs: int, options: JobOptions = FAILS) -> int:
    parent = await _push(runtime, options, [NO_TIES], [])
    for _ in range(jobs // BATCH):
        await _push(runtime, options, [Ties(parents=(parent,))] * BATCH, [])
    return parent


async def _freed(runtime: Runtime, jobs: int) -> int:
    return await _children(runtime, jobs, GOES_ON)


async def _of_several(runtime: Runtime, jobs: int) -> int:
    """Each waits for the same ten."""
    last = await _push(runtime, FAILS, [NO_TIES] * PARENTS, [])
    parents = tuple(range(last - PARENTS + 1, last + 1))
    for _ in range(jobs // BATCH):
        await _push(runtime, FAILS, [Ties(parents=parents)] * BATCH, [])
    return parents[0]


async def _chain(runtime: Runtime, jobs: int) -> int:
    """Each waits for the one before it."""
    first = last = await _push(runtime, FAILS, [NO_TIES], [])
    indexes: list[tuple[int, ...]] = [(at - 1,) if at else () for at in range(BATCH)]
    for _ in range(jobs // BATCH):
        ties = [Ties(parents=(last,)), *[NO_TIES] * (BATCH - 1)]
        last = await _push(runtime, FAILS, ties, indexes)
    return first


KINDS: dict[str, Fill] = {
    "jobs that fail with one": _children,
    "jobs that one lets go": _freed,
    f"jobs that fail with one of {PARENTS}": _of_several,
    "jobs that each wait for the one before": _chain,
}
