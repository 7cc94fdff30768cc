"""P15: operators' calls on a million jobs hold up nobody.

The runtime runs in this process, without a wire. The measure is the longest step of the loop during
a call, in processor time of its thread, so that a neighbour on the machine does not show; what the
store does on its own threads is not part of it.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from itertools import count
from time import perf_counter, thread_time
from typing import Any

from benchmarks.bench import Bench
from benchmarks.bodies import PAYLOAD
from benchmarks.figures import Figure, Unit, at_most
from jobline_server import memory
from jobline_server.engine.commands import Push
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, KEPT_STATES, AckLevel
from jobline_server.runtime.clock import SystemClock
from jobline_server.runtime.opening import open_runtime
from jobline_server.runtime.runtime import Runtime, RuntimeSettings
from jobline_server.runtime.views import Audit, JobFilter, Selection
from jobline_server.serving import collect_cycles
from jobline_server.storage.recovery import SetApart
from jobline_server.storage.sqlite.directory import stores_in

JOBS = 1_000_000
# Jobs that are put back are read and written one by one: a million take minutes.
RETRIED_JOBS = 100_000
BATCH = 1_000
STEP_SECONDS_MAX = 0.020
QUEUE = "bench"
ALL = Selection(filter=JobFilter(queue=QUEUE))
ENDED = Selection(filter=JobFilter(queue=QUEUE, states=KEPT_STATES))

Call = Callable[[], Coroutine[Any, Any, Any]]
Fill = Callable[[Runtime, int], Awaitable[None]]


async def act(bench: Bench) -> None:
    """P15: every call on many jobs, over jobs in lots and over jobs that are objects."""
    # What is measured is in this process, and its garbage is collected as in the server.
    memory.tune()
    gc.enable()
    try:
        await _act(bench)
    finally:
        gc.disable()


async def _act(bench: Bench) -> None:
    jobs = bench.scaled(JOBS)
    for kind, fill in (("in lots", _fill_lots), ("with options of their own", _fill_rows)):
        async with runtime_at_work(bench) as runtime:
            what = f"{jobs:,} jobs {kind}"
            await fill(runtime, jobs)
            for name, call in _calls_on_live(runtime).items():
                await _measure(bench, f"{name}, {what}", call)
            await fill(runtime, jobs)
            await _measure(bench, f"drain, {what}", _drain(runtime))
            await fill(runtime, jobs)
            await _measure(bench, f"delete the queue, {what}", _delete(runtime))
            await fill(runtime, bench.scaled(RETRIED_JOBS))
            await runtime.bulk.cancel_jobs(ALL, dry_run=False, audit=Audit())
            what = f"{bench.scaled(RETRIED_JOBS):,} jobs {kind}"
            for name, call in _calls_on_ended(runtime).items():
                await _measure(bench, f"{name}, {what}", call)
        gc.collect()


def _calls_on_live(runtime: Runtime) -> dict[str, Call]:
    none = JobFilter(queue=QUEUE, name="none")
    return {
        "dry run of cancel by filter": lambda: runtime.bulk.cancel_jobs(
            ALL, dry_run=True, audit=Audit()
        ),
        "list of nothing": lambda: runtime.jobs.list_jobs(
            none, page_size=100, page_token="", include_payloads=False
        ),
        "cancel by filter": lambda: runtime.bulk.cancel_jobs(ALL, dry_run=False, audit=Audit()),
        "dry run of retry by filter": lambda: runtime.bulk.retry_jobs(
            ENDED, dry_run=True, audit=Audit()
        ),
    }


def _calls_on_ended(runtime: Runtime) -> dict[str, Call]:
    return {
        "retry by filter": lambda: runtime.bulk.retry_jobs(ENDED, dry_run=False, audit=Audit()),
        "cancel again": lambda: runtime.bulk.cancel_jobs(ALL, dry_run=False, audit=Audit()),
        "delete by filter": lambda: runtime.bulk.delete_jobs(ENDED, dry_run=False, audit=Audit()),
    }


def _drain(runtime: Runtime) -> Call:
    return lambda: runtime.queues.drain_queue(QUEUE, dry_run=False, audit=Audit())


def _delete(runtime: Runtime) -> Call:
    return lambda: runtime.queues.delete_queue(QUEUE, force=True, dry_run=False, audit=Audit())


async def _measure(bench: Bench, what: str, call: Call) -> None:
    """The longest step of a call, and in the note how long all of it took."""
    began, before, longest = perf_counter(), thread_time(), 0.0
    task = asyncio.ensure_future(call())
    while not task.done():
        await asyncio.sleep(0)
        now = thread_time()
        before, longest = now, max(longest, now - before)
    await task
    note = f"{perf_counter() - began:.1f} s in all"
    step = f"longest step of the loop: {what}"
    bench.add(Figure("P15", step, longest, Unit.TIME, at_most(STEP_SECONDS_MAX), note=note))


async def _fill_lots(runtime: Runtime, jobs: int) -> None:
    push = Push(QUEUE, DEFAULT_OPTIONS, payloads=Payloads.of([PAYLOAD] * BATCH))
    await _push(runtime, push, jobs // BATCH)


async def _fill_rows(runtime: Runtime, jobs: int) -> None:
    rows = JobColumns([PAYLOAD] * BATCH, [DEFAULT_OPTIONS] * BATCH, [], [])
    await _push(runtime, Push(QUEUE, DEFAULT_OPTIONS, rows=rows), jobs // BATCH)


async def _push(runtime: Runtime, push: Push, times: int) -> None:
    """Pushes the same again and again, with little left for the disk when it is measured."""
    push.level = AckLevel.BUFFERED
    for number in range(times):
        await runtime.pushes.push(push)
        if number % 16 == 0:
            await runtime.core.commits.wait()
    await runtime.core.commits.wait()


@asynccontextmanager
async def runtime_at_work(bench: Bench) -> AsyncIterator[Runtime]:
    """A runtime at work on a fresh directory, and no more than its calls."""
    names = count(1)
    data = bench.fresh_directory()
    runtime = await open_runtime(
        stores_in(data),
        shards=8,
        clock=SystemClock(),
        settings=RuntimeSettings(),
        new_name=lambda: f"bench-{next(names)}",
        report=_refuse,
    )
    runtime.start()
    memory.freeze()
    collect_cycles(runtime.core)
    try:
        yield runtime
    finally:
        await runtime.stop()


def _refuse(found: SetApart) -> None:
    raise AssertionError(found)
