"""P4 and P6: the same through the client that people install."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, repeat
from math import inf
from time import perf_counter, process_time
from typing import Any

from benchmarks.bench import TRANSPORTS, Bench, Running
from benchmarks.bodies import PAYLOAD, QUEUE, plain
from benchmarks.draining import WINDOW
from benchmarks.drains import StreamDrain, expect_completed
from benchmarks.figures import Figure, Unit, at_least
from benchmarks.pushing import SIXTY_FOUR
from jobline import AsyncClient, Outgoing, Pushed, PushMiddleware, Worker

WORKED = 200_000
PUSHERS = 64
TRACED_SHARE_MIN = 0.8


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
    them as many callers that each make an RPC for one job (P5), and the same pushes with a trace of
    its own in each.
    """
    for transport in TRANSPORTS:
        async with bench.server(transport) as server:
            single = await bench.push_rate(server, plain(1), jobs=1, callers=SIXTY_FOUR)
            pushed = await _pushed(bench, server, repeat({}))
            traced = await _pushed(bench, server, ({"headers": trace} for trace in traces()))
            by_middleware = await _pushed(bench, server, repeat({}), Tracing())
        what = f"AsyncClient.push, one job a call, {PUSHERS} callers, {transport}"
        ratio = f"{pushed.rate / single:.1f} × an RPC for each job ({single:,.0f}/s)"
        bench.add(Figure("P6", what, pushed.rate, Unit.CALLS, at_least(45_000), ratio))
        what = f"the same, a trace header of its own in every push, {transport}"
        bench.add(_beside(what, traced, pushed))
        what = f"the same, the trace header added by middleware, {transport}"
        bench.add(_beside(what, by_middleware, pushed))


def traces() -> Iterator[dict[str, str]]:
    """Headers with a trace context as W3C has it; none comes twice."""
    for number in count(1):
        yield {"traceparent": f"00-{number:032x}-{number:016x}-01"}


class Tracing(PushMiddleware):
    """Gives each job a trace of its own."""

    def __init__(self) -> None:
        self._traces = traces()

    async def around(
        self,
        jobs: Sequence[Outgoing],
        call_next: Callable[[Sequence[Outgoing]], Awaitable[list[Pushed]]],
    ) -> list[Pushed]:
        """Around each push."""
        return await call_next([job.with_headers(next(self._traces)) for job in jobs])


@dataclass(slots=True)
class _Best:
    """The best of some repeats: pushes a second, and seconds of processor time of client and server
    for each push.
    """

    rate: float = 0.0
    processor: float = inf


def _beside(what: str, traced: _Best, plainly: _Best) -> Figure:
    share = traced.rate / plainly.rate
    ratio = (
        f"{share:.0%} of the rate without (target ≥ {TRACED_SHARE_MIN:.0%}), "
        f"{plainly.processor / traced.processor:.0%} by processor time"
    )
    met = share >= TRACED_SHARE_MIN
    return Figure("P6", what, traced.rate, Unit.CALLS, ratio=ratio, ratio_met=met)


async def _pushed(
    bench: Bench, server: Running, how: Iterator[dict[str, Any]], *middleware: PushMiddleware
) -> _Best:
    """Pushes from many callers, each with the next keywords of `how`."""
    best = _Best()
    async with AsyncClient(server.address, middleware=middleware) as client:
        await client.push(QUEUE, PAYLOAD)

        async def measure() -> float:
            before = (await server.wire.stats()).pushed_total
            pushed = 0
            used = process_time() + server.process.processor_seconds()
            began = perf_counter()
            end = began + bench.seconds

            async def caller() -> None:
                nonlocal pushed
                while perf_counter() < end:
                    await client.push(QUEUE, PAYLOAD, **next(how))
                    pushed += 1

            await asyncio.gather(*(caller() for _ in range(PUSHERS)))
            seconds = perf_counter() - began
            used = process_time() + server.process.processor_seconds() - used
            best.processor = min(best.processor, used / pushed)
            await server.wire.expect_pushed(before, pushed)
            return pushed / seconds

        best.rate = await bench.best(server, measure)
    return best
