"""P15: what a push costs while up to a thousand watchers are told of it, over gRPC and HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from statistics import median
from time import perf_counter
from typing import Any

from grpc import aio

from benchmarks import bodies
from benchmarks.bench import Bench, Running
from benchmarks.figures import Figure, Unit, at_most
from benchmarks.h2load import LoadFailed
from benchmarks.wire import Wire
from jobline.v1 import job_service_pb2

CROWDS = (0, 1, 100, 1_000)
# Watchers of a connection, of those over gRPC.
EACH = 50
# The bound on a step of the server's loop.
STEP_SECONDS = 0.020
PUSHES = 300
# Between two pushes, so that each one is told by itself.
PAUSE_SECONDS = 0.005


async def crowds(bench: Bench) -> None:
    """P15: one push after the other, with nobody, one, a hundred and a thousand watching."""
    alone = 0.0
    for crowd in CROWDS:
        async with (
            bench.server("grpcio", "--http", "127.0.0.1:0", "--max-watchers", "1000") as server,
            _watching(server, crowd),
        ):
            value = await _push_time(bench, server)
            lag = (await server.wire.stats()).loop_lag.ToMicroseconds() / 1e6
        alone = alone or value
        who = f"{crowd:,} watchers, half over HTTP" if crowd > 1 else f"{crowd} watchers"
        what = f"one push at a time, {who}"
        ratio = f"{value / alone:.1f} × that without"
        bench.add(Figure("P15", f"{what}: p50", value, Unit.TIME, ratio=ratio))
        bench.add(
            Figure(
                "P15",
                f"{what}: longest step of the loop",
                lag,
                Unit.TIME,
                target=at_most(STEP_SECONDS),
                ratio=f"{lag / value:.1f} × a push",
            )
        )


async def _push_time(bench: Bench, server: Running) -> float:
    message = bodies.plain(1)
    times = []
    for _ in range(bench.scaled(PUSHES)):
        began = perf_counter()
        await server.wire.push(message)
        times.append(perf_counter() - began)
        await asyncio.sleep(PAUSE_SECONDS)
    return median(times)


@asynccontextmanager
async def _watching(server: Running, crowd: int) -> AsyncIterator[None]:
    """Watchers that read all they are sent."""
    async with AsyncExitStack() as stack:
        over_http = crowd // 2
        reading: list[asyncio.Task[None]] = []
        wires = [
            await stack.enter_async_context(Wire(server.address))
            for _ in range(-(-(crowd - over_http) // EACH))
        ]
        request = job_service_pb2.WatchRequest(accepts_runs=True).SerializeToString()
        for number in range(crowd - over_http):
            call = wires[number % len(wires)].watch(request)
            await call.read()
            reading.append(asyncio.ensure_future(_read_grpc(call)))
        for _ in range(over_http):
            reader, writer = await _open(server.process.http)
            # A writer that nobody holds closes its connection.
            stack.callback(writer.close)
            reading.append(asyncio.ensure_future(_read_http(reader)))
        yield
        if ended := [one for one in reading if one.done()]:
            raise LoadFailed(f"{len(ended)} of {len(reading)} watchers were cut off")
        for one in reading:
            one.cancel()
        await asyncio.gather(*reading, return_exceptions=True)


async def _read_grpc(call: Any) -> None:
    while await call.read() is not aio.EOF:
        pass


async def _open(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
    await reader.readuntil(b": ping")
    return reader, writer


async def _read_http(reader: asyncio.StreamReader) -> None:
    while await reader.read(1 << 16):
        pass
