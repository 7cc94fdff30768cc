"""P4 and P6: the same through the client that people install."""

from __future__ import annotations

import asyncio
from time import perf_counter

from benchmarks.bench import TRANSPORTS, Bench, Running
from benchmarks.bodies import PAYLOAD, QUEUE, plain
from benchmarks.draining import WINDOW
from benchmarks.drains import StreamDrain, expect_completed
from benchmarks.figures import Figure, Unit, at_least
from benchmarks.pushing import SIXTY_FOUR
from jobline import AsyncClient, Worker

WORKED = 200_000
PUSHERS = 64


async def worker(bench: Bench) -> None:
    """P4: a `Worker` with a handler that returns at once, beside a stream without a worker."""
    async with bench.server("native") as server:
        bare = await _drained(bench, server)
        value = await _worked(bench, server)
    what = "the Python Worker, a handler that returns at once, native"
    ratio = f"{value / bare:.0%} of one stream that runs no handlers"
    bench.add(Figure("P4", what, value, Unit.JOBS, at_least(40_000), ratio))


async def _drained(bench: Bench, server: Running) -> float:
    jobs = bench.scaled(WORKED)

    async def measure() -> float:
        await server.wire.fill(jobs)
        return await StreamDrain(server, jobs, window=WINDOW, runs=True).run()

    return await bench.best(server, measure)


async def _worked(bench: Bench, server: Running) -> float:
    jobs = bench.scaled(WORKED)

    async def measure() -> float:
        await server.wire.fill(jobs)
        before = (await server.wire.stats()).completed_total
        begun = handled = 0
        began = 0.0
        over = asyncio.Event()
        shipped = Worker(server.address, concurrency=256)

        @shipped.handler(QUEUE)
        async def handle(_payload: object) -> None:
            nonlocal begun, handled, began
            if not begun:
                begun, began = 1, perf_counter()
            handled += 1
            if handled == jobs:
                over.set()

        serving = asyncio.create_task(shipped.serve())
        await over.wait()
        # The last acks are under way; each question is a call, so this loop waits.
        while (await server.wire.stats()).completed_total - before < jobs:
            pass
        seconds = perf_counter() - began
        shipped.stop()
        await serving
        await expect_completed(server.wire, before, jobs, handled)
        return jobs / seconds

    return await bench.best(server, measure)


async def pushers(bench: Bench) -> None:
    """P6: 64 callers of `AsyncClient.push`, one job each; calls at one time share an RPC. Beside
    them as many callers that each make an RPC for one job (P5).
    """
    for transport in TRANSPORTS:
        async with bench.server(transport) as server:
            single = await bench.push_rate(server, plain(1), jobs=1, callers=SIXTY_FOUR)
            value = await _pushed(bench, server)
        what = f"AsyncClient.push, one job a call, {PUSHERS} callers, {transport}"
        ratio = f"{value / single:.1f} × an RPC for each job ({single:,.0f}/s)"
        bench.add(Figure("P6", what, value, Unit.CALLS, at_least(45_000), ratio))


async def _pushed(bench: Bench, server: Running) -> float:
    async with AsyncClient(server.address) as client:
        await client.push(QUEUE, PAYLOAD)

        async def measure() -> float:
            before = (await server.wire.stats()).pushed_total
            pushed = 0
            began = perf_counter()
            end = began + bench.seconds

            async def caller() -> None:
                nonlocal pushed
                while perf_counter() < end:
                    await client.push(QUEUE, PAYLOAD)
                    pushed += 1

            await asyncio.gather(*(caller() for _ in range(PUSHERS)))
            seconds = perf_counter() - began
            await server.wire.expect_pushed(before, pushed)
            return pushed / seconds

        return await bench.best(server, measure)
