"""P7 and P8: how long one push takes, and how long until a worker has its job."""

from __future__ import annotations

import asyncio
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks import bodies
from benchmarks.bench import TRANSPORTS, Bench, Running
from benchmarks.drains import leases_of
from benchmarks.figures import Figure, Unit
from benchmarks.h2load import LoadFailed, post_timed
from jobline.v1 import job_service_pb2

CALLS = 2_000
HANDED = 400
IDLE_SECONDS = 0.003


async def one_at_a_time(bench: Bench) -> None:
    """P7: one push after another, each fsynced before the next."""
    for transport in TRANSPORTS:
        async with bench.floor(transport) as floor:
            empty = percentiles(await push_times(floor, bench.scaled(CALLS)))
        async with bench.server(transport) as server:
            p50, p99 = percentiles(await push_times(server, bench.scaled(CALLS)))
        times = p50 / (empty[0] + bench.fsync_seconds)
        what = f"one push at a time, {transport}"
        bench.add(
            Figure(
                "P7",
                f"{what}: p50",
                p50,
                Unit.TIME,
                ratio=f"{times:.2f} × (empty handler {empty[0] * 1e6:.0f} µs + one fsync)"
                " (target ≤ 1.5 ×)",
                ratio_met=times <= 1.5,
                note=f"{1 / p50:,.0f} a second",
            )
        )
        bench.add(
            Figure(
                "P7",
                f"{what}: p99",
                p99,
                Unit.TIME,
                ratio=f"{p99 / p50:.1f} × p50 (target ≤ 5 ×)",
                ratio_met=p99 <= 5 * p50,
            )
        )


async def push_times(running: Running, calls: int) -> list[float]:
    """What each of so many pushes took, one after another."""
    message = bodies.plain(1)
    before = await running.arrived()
    times = await post_timed(running.url(bodies.PUSH), message, calls=calls)
    if await running.arrived() - before != calls:
        raise LoadFailed(f"{calls} pushes were sent, and not all are stored")
    return times


def percentiles(times: list[float]) -> tuple[float, float]:
    """The median, and what one in a hundred exceeds."""
    ordered = sorted(times)
    return median(ordered), ordered[len(ordered) * 99 // 100]


async def until_handed_out(bench: Bench) -> None:
    """P8: from the start of a push until the job is at a worker that waited, on an idle server."""
    for transport in TRANSPORTS:
        async with bench.server(transport) as server:
            handed, calls = await handed_out(server, bench.scaled(HANDED))
        (p50, p99), call = percentiles(handed), median(calls)
        bench.add(
            Figure(
                "P8",
                f"push → a waiting worker has the job, idle server, {transport}: p50",
                p50,
                Unit.TIME,
                ratio=f"{p50 / call:.2f} × a unary call, the fsynced push itself"
                f" ({call * 1e6:.0f} µs) (target ≤ 2 ×)",
                ratio_met=p50 <= 2 * call,
                note=f"p99 {p99 * 1e3:.1f} ms",
            )
        )


async def handed_out(server: Running, count: int) -> tuple[list[float], list[float]]:
    """Times from push to worker, and of the pushes."""
    call = server.wire.stream()
    await call.write(bodies.opening(10, runs=True))
    await call.read()
    handed: list[float] = []
    calls: list[float] = []
    message = bodies.plain(1)

    async def push() -> None:
        began = perf_counter()
        await server.wire.push(message)
        calls.append(perf_counter() - began)

    for seq in range(1, count + 1):
        began = perf_counter()
        pushing = asyncio.create_task(push())
        ids, deliveries = await _next_job(call)
        handed.append(perf_counter() - began)
        await pushing
        await call.write(bodies.settle(seq, ids, deliveries))
        await asyncio.sleep(IDLE_SECONDS)
    call.cancel()
    return handed, calls


async def _next_job(call: Any) -> tuple[list[int], list[int]]:
    while True:
        leases = leases_of(job_service_pb2.StreamResponse.FromString(await call.read()))
        if leases[0]:
            return leases
