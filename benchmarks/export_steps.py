"""P16: the longest step of the server's loop with its history exported, beside the same without.

Lots, jobs with options of their own, the largest pushes, and jobs that are handed out and acked in
any order; files are finished every second meanwhile, and checkpoints are made. Steps are timed in
processor time of the loop's thread (`million.stepping`).
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

from benchmarks import bodies
from benchmarks.bench import Bench, Running, post_counted
from benchmarks.draining import CALLERS, WINDOW
from benchmarks.drains import StreamDrain, drain_by_calls
from benchmarks.figures import Figure, Unit, at_most, shown
from benchmarks.million.stepping import Steps
from benchmarks.pushing import SIXTEEN

STEP_SECONDS_MAX = 0.020
# The most jobs of a call, and so many calls at the same time.
LARGE, AT_ONCE = 10_000, 5
# So many jobs are pushed, and then ended.
JOBS = 300_000
# Files are finished, and a checkpoint is made, while each load runs.
FLAGS = ("--history-seconds", "1", "--checkpoint-journal-bytes", "16MiB")
# What a load left to do is done by then.
AFTER_SECONDS = 0.5

Do = Callable[[Bench, Running], Awaitable[object]]


class Load(NamedTuple):
    """What is done to a server."""

    what: str
    do: Do


async def measure(bench: Bench) -> None:
    """P16: steps of the loop, with the history exported and without."""
    history = bench.fresh_directory()
    try:
        free = await _longest(bench, ())
        exporting = await _longest(bench, ("--history", str(history), *FLAGS))
    finally:
        shutil.rmtree(history, ignore_errors=True)
    for load in LOADS:
        what = f"longest step of the loop with the history exported: {load.what}"
        without = f"{shown(free[load.what], Unit.TIME)} without"
        target = at_most(STEP_SECONDS_MAX)
        bench.add(Figure("P16", what, exporting[load.what], Unit.TIME, target, without))


async def _longest(bench: Bench, flags: tuple[str, ...]) -> dict[str, float]:
    """Returns the longest step while each load runs."""
    found = {}
    async with _server(bench, flags) as (server, steps):
        for load in LOADS:
            steps.take()
            await load.do(bench, server)
            await asyncio.sleep(AFTER_SECONDS)
            found[load.what], where = steps.take()
            if found[load.what] > STEP_SECONDS_MAX:
                sys.stderr.write(f"      {load.what}: {found[load.what] * 1e3:.1f} ms in {where}\n")
    return found


@asynccontextmanager
async def _server(bench: Bench, flags: tuple[str, ...]) -> AsyncIterator[tuple[Running, Steps]]:
    data = bench.fresh_directory()
    file = data.with_suffix(".steps")
    steps = Steps(file, make=True)
    module = f"benchmarks.million.stepping {file}".split()
    try:
        async with bench.server_on(data, "native", *flags, module=module) as running:
            yield running, steps
    finally:
        shutil.rmtree(data, ignore_errors=True)
        file.unlink()


async def _push(message: bytes, jobs: int, bench: Bench, server: Running) -> None:
    calls = bench.scaled(JOBS) // jobs
    await post_counted(server, message, jobs=jobs, calls=calls, callers=SIXTEEN)


async def _push_large(body: Callable[[], bytes], bench: Bench, server: Running) -> None:
    message, before = body(), (await server.wire.stats()).pushed_total
    rounds = max(1, bench.scaled(JOBS) // (LARGE * AT_ONCE))
    for _ in range(rounds):
        await asyncio.gather(*[server.wire.push(message) for _ in range(AT_ONCE)])
    await server.wire.expect_pushed(before, rounds * AT_ONCE * LARGE)


async def _drain_by_calls(runs: bool, _bench: Bench, server: Running) -> None:
    await drain_by_calls(server, await _left(server), callers=CALLERS, runs=runs)


async def _drain_by_stream(runs: bool, shuffled: bool, _bench: Bench, server: Running) -> None:
    jobs = await _left(server)
    await StreamDrain(server, jobs, window=WINDOW, runs=runs, shuffled=shuffled).run()


async def _left(server: Running) -> int:
    stats = await server.wire.stats()
    return stats.pushed_total - stats.completed_total


# What is pushed by one is ended by the next.
LOADS = (
    Load("push, 1,000 plain jobs a call", partial(_push, bodies.plain(1_000), 1_000)),
    Load("one stream, runs, random acks", partial(_drain_by_stream, True, True)),
    Load(
        f"push, {LARGE:,} plain jobs a call, {AT_ONCE} at once",
        partial(_push_large, partial(bodies.plain, LARGE)),
    ),
    Load("pull 1,000 + ack 1,000, runs", partial(_drain_by_calls, True)),
    Load(
        f"push, {LARGE:,} jobs with a trace header each a call, {AT_ONCE} at once",
        partial(_push_large, partial(bodies.traced_columns, LARGE, 0)),
    ),
    Load("one stream, runs with headers, random acks", partial(_drain_by_stream, True, True)),
    Load(
        "push, 1,000 jobs with options of their own a call",
        partial(_push, bodies.rows(1_000), 1_000),
    ),
    Load("one stream, rows, random acks", partial(_drain_by_stream, False, True)),
)
