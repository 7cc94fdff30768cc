"""P14: what a server costs that has nothing to do."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Any

from benchmarks import bodies
from benchmarks.bench import Bench, Running
from benchmarks.figures import Figure, Unit, at_most
from benchmarks.h2load import LoadFailed
from benchmarks.wire import Wire
from jobline._stream.heartbeat import HEARTBEAT_SHARE
from jobline.v1 import job_service_pb2

STREAMS = 1_000
WAITING = 1_000_000
# Several connections: one serves a hundred streams by default.
STREAMS_A_WIRE = 100
# What a load left behind is done by then: a checkpoint, or garbage.
SETTLE_SECONDS = 1.5
EMPTY_BYTES_MAX = 90 << 20


async def idle(bench: Bench) -> None:
    """P14: an empty server; then one with jobs waiting and workers connected that want others."""
    seconds = 3.0 if bench.quick else 10.0
    for transport in ("grpcio", "native"):
        async with bench.server(transport) as server:
            await asyncio.sleep(SETTLE_SECONDS)
            share = await busy_share(server, seconds)
            size = server.process.memory_bytes()
        what = f"an empty server that does nothing, {transport}"
        bench.add(Figure("P14", f"{what}: of a core", share, Unit.SHARE, at_most(0.5)))
        bench.add(Figure("P14", f"{what}: memory", size, Unit.MEMORY, at_most(EMPTY_BYTES_MAX)))
    async with bench.server("native") as server:
        await server.wire.fill(bench.scaled(WAITING))
        async with asyncio.TaskGroup() as tasks:
            streams = IdleStreams(server.address, bench.scaled(STREAMS))
            await streams.open(tasks)
            await asyncio.sleep(SETTLE_SECONDS)
            # Of each stream one frame of the server's own at least.
            share = await busy_share(server, streams.heartbeat_seconds)
            workers = (await server.wire.stats()).workers
            await streams.close()
    if workers != streams.count:
        raise LoadFailed(f"{streams.count} streams were opened, and {workers} are there")
    what = f"{bench.scaled(WAITING):,} jobs waiting and {streams.count:,} idle streams: of a core"
    bench.add(Figure("P14", what, share, Unit.SHARE, at_most(2.0)))


async def busy_share(server: Running, seconds: float) -> float:
    """Per cent of a core that the server used meanwhile."""
    used, began = server.process.processor_seconds(), perf_counter()
    await asyncio.sleep(seconds)
    return 100 * (server.process.processor_seconds() - used) / (perf_counter() - began)


class IdleStreams:
    """Workers that wait at an empty queue and send heartbeats."""

    def __init__(self, address: str, count: int) -> None:
        self.count = count
        self.heartbeat_seconds = 0.0
        self._wires = [Wire(address) for _ in range(-(-count // STREAMS_A_WIRE))]
        self._calls: list[Any] = []
        self._closing = asyncio.Event()

    async def open(self, tasks: asyncio.TaskGroup) -> None:
        """Opens them all; they live in `tasks` from then on."""
        opening = bodies.opening(10, runs=True, queue="nobody-pushes-here")
        for index in range(self.count):
            call = self._wires[index // STREAMS_A_WIRE].stream()
            await call.write(opening)
            self._calls.append(call)
        for call in self._calls:
            opened = job_service_pb2.StreamResponse.FromString(await call.read()).opened
            self.heartbeat_seconds = opened.heartbeat_interval.ToNanoseconds() / 1e9
            tasks.create_task(self._read(call))
        tasks.create_task(self._beat())

    async def _read(self, call: Any) -> None:
        while not self._closing.is_set():
            await call.read()

    async def _beat(self) -> None:
        """Every stream's heartbeat, spread evenly."""
        heartbeat = bodies.heartbeat()
        while not self._closing.is_set():
            for call in self._calls:
                await call.write(heartbeat)
                await asyncio.sleep(HEARTBEAT_SHARE * self.heartbeat_seconds / self.count)
                if self._closing.is_set():
                    return

    async def close(self) -> None:
        """Ends them."""
        self._closing.set()
        for call in self._calls:
            await call.done_writing()
        for wire in self._wires:
            await wire.__aexit__(None, None, None)
