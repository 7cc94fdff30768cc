"""P15: what pushes lose when others look on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

from grpc import aio

from benchmarks import bodies
from benchmarks.bench import TRANSPORTS, Bench, Running
from benchmarks.figures import Figure, Unit
from benchmarks.h2load import Callers, LoadFailed
from benchmarks.wire import Wire
from jobline.v1 import job_service_pb2

JOBS = 1_000
CALLERS = Callers(4, 4)
# Pushes with watchers and without go in turns, each on a server of its own: nothing is kept for
# watchers where there were none, and no checkpoint of what came before meets one alone.
PAIRS = 3


@dataclass(frozen=True, slots=True)
class _Onlookers:
    """Who looks on, and what pushes may keep of their rate at least."""

    what: str
    watchers: int
    request: job_service_pb2.WatchRequest
    share_min: float | None


_EVERYBODY = (
    _Onlookers(
        "five watchers of everything",
        5,
        job_service_pb2.WatchRequest(accepts_runs=True),
        0.8,
    ),
    _Onlookers(
        "five watchers of another queue",
        5,
        job_service_pb2.WatchRequest(queues=["nobody-pushes-here"]),
        0.98,
    ),
    _Onlookers("five watchers of another job", 5, job_service_pb2.WatchRequest(job_id=1), 0.98),
    _Onlookers("one watcher of everything, in rows", 1, job_service_pb2.WatchRequest(), None),
)


async def watch(bench: Bench) -> None:
    """P15: pushes with watchers, beside pushes without them on the same server."""
    for transport in TRANSPORTS:
        for onlookers in _EVERYBODY:
            value, share = await _pairs(bench, transport, onlookers)
            least = onlookers.share_min
            what = f"push, {JOBS:,} plain jobs a call, {CALLERS} callers, {onlookers.what}"
            bench.add(
                Figure(
                    "P15",
                    f"{what}, {transport}",
                    value,
                    Unit.JOBS,
                    ratio=f"{share:.0%} of the rate without them"
                    + (f" (target ≥ {least:.0%})" if least else ""),
                    ratio_met=share >= least if least else None,
                )
            )


async def _pairs(bench: Bench, transport: str, onlookers: _Onlookers) -> tuple[float, float]:
    """The median rate with watchers, and of its share in the rate of its pair without them."""
    pairs = []
    for _ in range(1 if bench.quick else PAIRS):
        async with bench.server(transport) as server:
            alone = await _rate(bench, server)
        async with bench.server(transport) as server, _watching(server, onlookers):
            pairs.append((await _rate(bench, server), alone))
    return median(rate for rate, _ in pairs), median(rate / alone for rate, alone in pairs)


async def _rate(bench: Bench, server: Running) -> float:
    return await bench.push_rate(server, bodies.plain(JOBS), jobs=JOBS, callers=CALLERS)


@asynccontextmanager
async def _watching(server: Running, onlookers: _Onlookers) -> AsyncIterator[None]:
    """Watchers that read all they are sent, each on a connection of its own."""
    request = onlookers.request.SerializeToString()
    wires = [Wire(server.address) for _ in range(onlookers.watchers)]
    calls: list[Any] = [wire.watch(request) for wire in wires]
    try:
        for call in calls:
            await call.read()
        reading = [asyncio.ensure_future(_read(call)) for call in calls]
        yield
        if ended := [one for one in reading if one.done()]:
            raise LoadFailed(f"{len(ended)} of {len(reading)} watchers were cut off")
        for one in reading:
            one.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
    finally:
        for call in calls:
            call.cancel()
        for wire in wires:
            await wire.close()


async def _read(call: Any) -> None:
    while await call.read() is not aio.EOF:
        pass
