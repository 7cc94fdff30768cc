"""P4 and P6: the client of each tree with its own server.

The client is what is measured, so it is not this tree's on both sides: `client_load` runs as a
process of each tree's environment, and its processor time counts with the server's.
"""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from benchmarks.bench import TRANSPORTS, Bench, Running
from benchmarks.bodies import QUEUE
from benchmarks.compare.rows import Measure, Row, metered
from benchmarks.compare.verdict import Sample
from benchmarks.drains import expect_completed
from benchmarks.figures import Unit
from benchmarks.h2load import LoadFailed

PROGRAM = Path(__file__).with_name("client_load.py")
WORKED = 60_000
PUSHED = 20_000


def rows() -> Iterator[Row]:
    """All rows of the client."""
    what = "the Python Worker, a handler that returns at once, native"
    yield Row("P4", what, Unit.JOBS, _working)
    for transport in TRANSPORTS:
        what = f"AsyncClient.push, one job a call, 64 callers, {transport}"
        yield Row("P6", what, Unit.CALLS, partial(_pushing, transport, "push"))
    what = "AsyncClient.push, a trace header in every push, native"
    yield Row("P6", what, Unit.CALLS, partial(_pushing, "native", "push-traced"))


@asynccontextmanager
async def _working(bench: Bench) -> AsyncIterator[Measure]:
    async with bench.server("native") as server, _client(bench, server, "work") as client:

        async def measure() -> Sample:
            await server.wire.fill(WORKED)
            before = await server.completed()
            sample = await client.measure(WORKED)
            await expect_completed(server.wire, before, WORKED, WORKED)
            return sample

        yield measure


@asynccontextmanager
async def _pushing(transport: str, load: str, bench: Bench) -> AsyncIterator[Measure]:
    async with bench.server(transport) as server, _client(bench, server, load) as client:

        async def measure() -> Sample:
            before = await server.arrived()
            sample = await client.measure(PUSHED)
            await server.wire.expect_pushed(before, PUSHED)
            return sample

        yield measure


@asynccontextmanager
async def _client(bench: Bench, server: Running, load: str) -> AsyncIterator[_Client]:
    process = await asyncio.create_subprocess_exec(
        *(bench.python, str(PROGRAM), load, server.address, QUEUE),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        yield _Client(process, server)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


class _Client:
    """A process that makes one load for each line that it reads."""

    def __init__(self, process: Process, server: Running) -> None:
        self._process = process
        self._server = server
        self._processor = 0.0

    async def measure(self, jobs: int) -> Sample:
        """One load of so many jobs, with the processor time of both processes."""
        sample = await metered(self._server, jobs, lambda: self._rate(jobs))
        return Sample(sample.figure, (sample.processor or 0.0) + self._processor / jobs)

    async def _rate(self, jobs: int) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._process.stdin.write(f"{jobs}\n".encode())
        line = await self._process.stdout.readline()
        if not line:
            said = (await self._process.stderr.read()).decode().strip().splitlines()
            raise LoadFailed(f"the client ended: {said[-1] if said else 'and said nothing'}")
        done = json.loads(line)
        self._processor = float(done["processor"])
        return jobs / float(done["seconds"])
