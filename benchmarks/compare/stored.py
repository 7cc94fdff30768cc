"""P9, P10, P11 and P14: what jobs cost that wait, and what a server costs at rest."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from benchmarks.bench import TRANSPORTS, Bench, Running
from benchmarks.compare.rows import Measure, Row, metered
from benchmarks.compare.verdict import Sample
from benchmarks.figures import Unit
from benchmarks.growth import Cycles, fill_queues
from benchmarks.h2load import LoadFailed
from benchmarks.idle import SETTLE_SECONDS, IdleStreams, busy_share
from benchmarks.sizes import push_rows
from benchmarks.turns import A_CALL

HELD_JOBS = 200_000
STORED_JOBS = 200_000
CYCLES = 300
WAITING = (1_000, 1_000_000)
# So many that they are still being written into tables while the cycles run.
CROWD = 3_000_000
QUEUES = (100, 10_000)
JOBS_IN_QUEUES = 500_000
IDLE_SECONDS = 3.0
STREAM_SECONDS = 8.0
STREAMS = 300
WAITING_AT_REST = 200_000
MEMORY_SECONDS = 0.5

_KINDS = ("plain jobs", "jobs with options", "jobs with a trace header")


def rows() -> Iterator[Row]:
    """All rows of what is stored."""
    for kind in _KINDS:
        what = f"memory, {kind} waiting"
        yield Row("P9", what, Unit.BYTES, partial(_memory, kind))
    for kind in _KINDS[:2]:
        for how in ("kill -9", "a clean stop"):
            what = f"start with {STORED_JOBS:,} {kind} on disk, after {how}"
            yield Row("P10", what, Unit.TIME, partial(_start, kind, how == "kill -9"))
    cycle = f"push + pull + ack, {A_CALL:,} a call"
    for waiting in WAITING:
        what = f"{cycle}, {waiting:,} jobs waiting"
        yield Row("P11", what, Unit.JOBS, partial(_cycles, 1, waiting))
    what = f"{cycle}, {CROWD:,} jobs waiting, being written into tables"
    yield Row("P11", what, Unit.JOBS, _crowded_cycles)
    for queues in QUEUES:
        what = f"{cycle}, {JOBS_IN_QUEUES:,} jobs in {queues:,} queues"
        yield Row("P11", what, Unit.JOBS, partial(_cycles, queues, JOBS_IN_QUEUES))
    for transport in TRANSPORTS:
        what = f"an empty server that does nothing, {transport}"
        rest = partial(_at_rest, transport)
        yield Row("P14", f"{what}: of a core", Unit.SHARE, rest, is_together=True)
        yield Row("P14", f"{what}: memory", Unit.MEMORY, partial(_empty_memory, transport))
    what = f"{WAITING_AT_REST:,} jobs waiting and {STREAMS} idle streams: of a core"
    yield Row("P14", what, Unit.SHARE, _idle_streams, is_together=True)


async def _fill(server: Running, kind: str, jobs: int) -> None:
    if kind == _KINDS[0]:
        await server.wire.fill(jobs)
    else:
        await push_rows(server, jobs, traced=kind == _KINDS[2])


@asynccontextmanager
async def _memory(kind: str, bench: Bench) -> AsyncIterator[Measure]:
    async with bench.server("native") as server:
        await _fill(server, kind, HELD_JOBS)
        await asyncio.sleep(MEMORY_SECONDS)
        before = server.process.memory_bytes()
        held = 0

        async def measure() -> Sample:
            nonlocal held
            await _fill(server, kind, HELD_JOBS)
            held += HELD_JOBS
            await asyncio.sleep(MEMORY_SECONDS)
            # Of all that came since: buffers and arenas grow by leaps.
            return Sample((server.process.memory_bytes() - before) / held)

        yield measure


@asynccontextmanager
async def _start(kind: str, is_killed: bool, bench: Bench) -> AsyncIterator[Measure]:
    """Each start finds a copy of the same files, which the tree's own server wrote."""
    data = bench.fresh_directory()
    try:
        async with bench.server_on(data, "native") as server:
            await _fill(server, kind, STORED_JOBS)
            if is_killed:
                server.process.kill()
        yield lambda: _started(bench, data)
    finally:
        shutil.rmtree(data, ignore_errors=True)


async def _started(bench: Bench, data: Path) -> Sample:
    copy = bench.fresh_directory()
    shutil.copytree(data, copy)
    try:
        async with bench.server_on(copy, "native") as server:
            used = server.process.processor_seconds()
            found = (await server.wire.stats()).ready
            if found != STORED_JOBS:
                raise LoadFailed(f"{STORED_JOBS} jobs were stored, and {found} were found")
            server.process.kill()
            return Sample(server.process.start_seconds, used)
    finally:
        shutil.rmtree(copy, ignore_errors=True)


@asynccontextmanager
async def _cycles(queues: int, waiting: int, bench: Bench) -> AsyncIterator[Measure]:
    names = [f"bench-{index}" for index in range(queues)]
    async with bench.server("native") as server:
        await fill_queues(server.wire, names, waiting // queues)
        cycles = Cycles(server, names)
        yield lambda: _cycled(server, cycles)


@asynccontextmanager
async def _crowded_cycles(bench: Bench) -> AsyncIterator[Measure]:
    """Each time a server of its own: what was written into tables once is there."""

    async def measure() -> Sample:
        async with bench.server("native") as server:
            await server.wire.fill(CROWD)
            sample = await _cycled(server, Cycles(server, ["bench"]))
            server.process.kill()
            return sample

    yield measure


async def _cycled(server: Running, cycles: Cycles) -> Sample:
    return await metered(server, CYCLES * A_CALL, lambda: cycles.run(lambda begun: begun >= CYCLES))


@asynccontextmanager
async def _at_rest(transport: str, bench: Bench) -> AsyncIterator[Measure]:
    async with bench.server(transport) as server:
        await asyncio.sleep(SETTLE_SECONDS)
        yield lambda: _busy(server, IDLE_SECONDS)


async def _busy(server: Running, seconds: float) -> Sample:
    return Sample(await busy_share(server, seconds))


@asynccontextmanager
async def _empty_memory(transport: str, bench: Bench) -> AsyncIterator[Measure]:
    async def measure() -> Sample:
        async with bench.server(transport) as server:
            await asyncio.sleep(MEMORY_SECONDS)
            return Sample(server.process.memory_bytes())

    yield measure


@asynccontextmanager
async def _idle_streams(bench: Bench) -> AsyncIterator[Measure]:
    async with bench.server("native") as server:
        await server.wire.fill(WAITING_AT_REST)
        async with asyncio.TaskGroup() as tasks:
            streams = IdleStreams(server.address, STREAMS)
            await streams.open(tasks)
            await asyncio.sleep(SETTLE_SECONDS)
            yield lambda: _busy(server, STREAM_SECONDS)
            workers = (await server.wire.stats()).workers
            await streams.close()
    if workers != STREAMS:
        raise LoadFailed(f"{STREAMS} streams were opened, and {workers} are there")
