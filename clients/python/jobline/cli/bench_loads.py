"""The loads of `jobline bench`: each is timed, and counted by what the server confirmed."""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobline.cli.connection import Connection
from jobline.cli.exit_codes import UsageError

if TYPE_CHECKING:
    from jobline import Client, Worker

PAYLOAD = bytes(100)
CALLERS = 4
JOBS_A_CALL = 1_000
# A worker that has done nothing for so long never will.
_PATIENCE_SECONDS = 60.0
_LOOK_SECONDS = 0.01

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured: a rate, or times of single calls."""

    what: str
    count: int | None = None
    per_second: float | None = None
    p50_seconds: float | None = None
    p99_seconds: float | None = None


def push(client: Client, queue: str, jobs: int, advance: Advance) -> Figure:
    """Pushes jobs, a thousand a call, with several callers at once."""
    stopped = threading.Event()

    def one_call(size: int) -> None:
        if not stopped.is_set():
            client.push_many(queue, [PAYLOAD] * size)
            advance(size)

    sizes = [JOBS_A_CALL] * (jobs // JOBS_A_CALL)
    sizes += [jobs % JOBS_A_CALL] if jobs % JOBS_A_CALL else []
    began = time.perf_counter()
    with ThreadPoolExecutor(CALLERS) as callers:
        try:
            list(callers.map(one_call, sizes))
        finally:
            stopped.set()
    took = time.perf_counter() - began
    what = f"push, {JOBS_A_CALL:,} jobs a call, {CALLERS} callers"
    return Figure(what, count=jobs, per_second=jobs / took)


def work(connection: Connection, queue: str, jobs: int, advance: Advance) -> Figure:
    """Works on all of them with one worker whose handler returns at once."""
    from jobline import ANY, Worker

    worker = Worker(**connection.of_worker(), concurrency=16)

    @worker.handler(queue, ANY, payload=bytes)
    async def nothing(_payload: bytes) -> None:
        """Is done."""

    took = asyncio.run(_until_done(worker, jobs, advance))
    return Figure("the stream of one Python worker", count=jobs, per_second=jobs / took)


async def _until_done(worker: Worker, jobs: int, advance: Advance) -> float:
    """Returns how long it took from its first connection."""
    serving = asyncio.create_task(worker.serve())
    try:
        await worker.wait_connected()
        began = last = time.perf_counter()
        done = 0
        while done < jobs:
            await asyncio.sleep(_LOOK_SECONDS)
            now, before, done = time.perf_counter(), done, worker.stats.done
            advance(done - before)
            last = now if done > before else last
            if serving.done():
                await serving
            if now - last > _PATIENCE_SECONDS:
                raise UsageError(f"the worker did {done:,} jobs of {jobs:,}, then got no more")
        return time.perf_counter() - began
    finally:
        worker.stop()
        await asyncio.gather(serving, return_exceptions=True)


def push_singly(client: Client, queue: str, count: int, advance: Advance) -> Figure:
    """Pushes one job after another, each when the one before was answered."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        client.push(queue, PAYLOAD)
        times.append(time.perf_counter() - began)
        advance(1)
    while pulled := client.pull(queue, max_jobs=JOBS_A_CALL):
        client.ack(*pulled)
    return of_times("push, one at a time", times)


def work_singly(client: Client, queue: str, count: int, advance: Advance) -> Figure:
    """Pushes a job, pulls it and acks it, and then the next one."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        client.push(queue, PAYLOAD)
        client.ack(*client.pull(queue, wait=10))
        times.append(time.perf_counter() - began)
        advance(1)
    return of_times("push, pull and ack, one at a time", times)


def of_times(what: str, times: list[float]) -> Figure:
    """Returns the figure of times in seconds."""
    p99 = sorted(times)[min(int(len(times) * 0.99), len(times) - 1)]
    median = statistics.median(times)
    return Figure(what, count=len(times), p50_seconds=median, p99_seconds=p99)
