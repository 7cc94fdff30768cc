"""P9 and P10: what waiting jobs cost in memory, and at the next start."""

from __future__ import annotations

import asyncio
import shutil
from functools import cache

from benchmarks import bodies
from benchmarks.bench import Bench, Running
from benchmarks.bodies import PAYLOAD_BYTES
from benchmarks.figures import Figure, Unit, at_most
from benchmarks.h2load import LoadFailed
from benchmarks.pushing import Traced

PLAIN_JOBS = 1_000_000
OPTION_JOBS = 1_000_000
STORED_JOBS = 1_000_000
# Of a start after a clean stop, with jobs that have options of their own.
OPTIONS_SECONDS_MAX = 2.5
# Buffers reach their size before the memory of jobs is counted.
WARM_JOBS = 50_000
SETTLE_SECONDS = 1.0


async def memory(bench: Bench) -> None:
    """P9: resident memory of the server, before and after."""
    jobs = bench.scaled(PLAIN_JOBS)
    async with bench.server("native") as server:
        await server.wire.fill(WARM_JOBS)
        before = await _memory(server)
        await server.wire.fill(jobs)
        value = (await _memory(server) - before) / jobs
    what = f"memory, {jobs:,} plain jobs waiting, payload of {PAYLOAD_BYTES} bytes included"
    ratio = f"{value / PAYLOAD_BYTES:.1f} × the payload"
    bench.add(Figure("P9", what, value, Unit.BYTES, at_most(200), ratio))
    for kind, target, body in (
        ("options of their own", at_most(600), _alike),
        ("a trace header of its own each", None, bodies.traced_rows),
        ("a trace header of its own each beside the payload", at_most(350), bodies.traced_columns),
    ):
        of_rows = await _memory_of_rows(bench, body)
        what = f"memory, {bench.scaled(OPTION_JOBS):,} jobs with {kind}"
        ratio = f"{of_rows / value:.1f} × a plain job"
        bench.add(Figure("P9", what, of_rows, Unit.BYTES, target, ratio))


async def _memory_of_rows(bench: Bench, body: Traced) -> float:
    jobs = bench.scaled(OPTION_JOBS)
    async with bench.server("native") as server:
        await _push(server, WARM_JOBS, body)
        before = await _memory(server)
        await _push(server, jobs, body)
        return (await _memory(server) - before) / jobs


async def push_rows(server: Running, count: int, traced: bool) -> None:
    """Pushes jobs with options of their own, a thousand a call."""
    await _push(server, count, bodies.traced_rows if traced else _alike)


@cache
def _alike(count: int, _first: int) -> bytes:
    return bodies.rows(count)


async def _push(server: Running, count: int, body: Traced) -> None:
    before = (await server.wire.stats()).pushed_total
    for first in range(before, before + count, 1_000):
        await server.wire.push(body(1_000, first))
    await server.wire.expect_pushed(before, count)


async def _memory(server: Running) -> int:
    await asyncio.sleep(SETTLE_SECONDS)
    return server.process.memory_bytes()


async def start(bench: Bench) -> None:
    """P10: from the start of the process to SERVING, with jobs on disk."""
    jobs = bench.scaled(STORED_JOBS)
    empty = await _start_seconds(bench, 0, plain=True, killed=False)
    for what, plain in (("plain jobs", True), ("jobs with options of their own", False)):
        for how, killed in (("kill -9: read from the journal", True), ("a clean stop", False)):
            value = await _start_seconds(bench, jobs, plain=plain, killed=killed)
            more = f"{value - empty:.2f} s more than an empty store"
            said = f"start with {jobs:,} {what} on disk, after {how}"
            target = at_most(5.0 if plain or killed else OPTIONS_SECONDS_MAX)
            bench.add(Figure("P10", said, value, Unit.TIME, target, ratio=more))


async def _start_seconds(bench: Bench, jobs: int, *, plain: bool, killed: bool) -> float:
    data = bench.fresh_directory()
    try:
        async with bench.server_on(data, "native") as server:
            if plain:
                await server.wire.fill(jobs)
            else:
                await push_rows(server, jobs, traced=False)
            if killed:
                server.process.kill()
        async with bench.server_on(data, "native") as server:
            found = (await server.wire.stats()).ready
            if found != jobs:
                raise LoadFailed(f"{jobs} jobs were stored, and {found} were found")
            return server.process.start_seconds
    finally:
        shutil.rmtree(data, ignore_errors=True)
