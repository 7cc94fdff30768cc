"""P1, P2 and P5: pushes, many jobs a call and one."""

from __future__ import annotations

import asyncio
from time import perf_counter

from benchmarks import bodies
from benchmarks.bench import TRANSPORTS, Bench, Running
from benchmarks.figures import Figure, Target, Unit, at_least
from benchmarks.h2load import Callers

SIXTEEN = Callers(4, 4)
FOUR = Callers(4)
SIXTY_FOUR = Callers(8, 8)

# Jobs that are all different: more of them than the server could remember the options of.
TRACED_CALLS = 200


async def lots(bench: Bench) -> None:
    """P1: plain jobs, many a call."""
    for transport in TRANSPORTS:
        await _beside_floor(bench, transport, 1_000, SIXTEEN, at_least(1_100_000), share=0.35)
        await _beside_floor(bench, transport, 10_000, FOUR, at_least(1_800_000))


async def _beside_floor(
    bench: Bench,
    transport: str,
    jobs: int,
    callers: Callers,
    target: Target,
    share: float | None = None,
) -> None:
    message = bodies.plain(jobs)
    async with bench.floor(transport) as floor:
        empty = await bench.push_rate(floor, message, jobs=jobs, callers=callers)
    async with bench.server(transport) as server:
        value = await bench.push_rate(server, message, jobs=jobs, callers=callers)
    bench.add(
        Figure(
            "P1",
            f"push, {jobs:,} plain jobs a call, {callers} callers, {transport}",
            value,
            Unit.JOBS,
            target,
            ratio=f"{value / empty:.0%} of an empty handler"
            + (f" (target ≥ {share:.0%})" if share else ""),
            ratio_met=value / empty >= share if share else None,
        )
    )


async def rows(bench: Bench) -> None:
    """P2: jobs with options of their own; and few jobs a call."""
    for transport in TRANSPORTS:
        async with bench.server(transport) as server:
            value = await bench.push_rate(server, bodies.rows(1_000), jobs=1_000, callers=SIXTEEN)
        what = f"push, 1,000 jobs with options of their own a call, {SIXTEEN} callers, {transport}"
        bench.add(Figure("P2", what, value, Unit.JOBS, at_least(300_000)))
    async with bench.server("native") as server:
        value = await traced(bench, server)
    what = f"the same, a trace header of its own in every job, {FOUR} callers, native"
    bench.add(Figure("P2", what, value, Unit.JOBS, note="bodies posted by Python"))
    for transport, target in (("native", at_least(120_000)), ("grpcio", None)):
        async with bench.server(transport) as server:
            value = await bench.push_rate(server, bodies.plain(10), jobs=10, callers=SIXTY_FOUR)
        what = f"push, 10 plain jobs a call, {SIXTY_FOUR} callers, {transport}"
        bench.add(Figure("P2", what, value, Unit.JOBS, target))


async def traced(bench: Bench, server: Running) -> float:
    """Jobs a second of pushes of which no two are alike."""
    calls = bench.scaled(TRACED_CALLS)

    async def measure() -> float:
        before = (await server.wire.stats()).pushed_total
        messages = [bodies.traced_rows(1_000, before + 1_000 * call) for call in range(calls)]
        left = iter(messages)

        async def caller() -> None:
            for message in left:
                await server.wire.push(message)

        began = perf_counter()
        await asyncio.gather(*(caller() for _ in range(4)))
        seconds = perf_counter() - began
        await server.wire.expect_pushed(before, 1_000 * calls)
        return 1_000 * calls / seconds

    return await bench.best(server, measure)


async def one_by_one(bench: Bench) -> None:
    """P5: one job a call, 64 calls at once, on both transports beside their floors."""
    message = bodies.plain(1)
    values: dict[str, float] = {}
    for transport in TRANSPORTS:
        async with bench.floor(transport) as floor:
            empty = await bench.push_rate(floor, message, jobs=1, callers=SIXTY_FOUR)
        async with bench.server(transport) as server:
            value = await bench.push_rate(server, message, jobs=1, callers=SIXTY_FOUR)
        values[transport] = value
        share = f"{value / empty:.0%} of an empty handler ({empty:,.0f}/s)"
        what = f"push, one job a call, {SIXTY_FOUR} calls at once, {transport}"
        if transport == "grpcio":
            ratio, met, target = f"{share} (target ≥ 80%)", value / empty >= 0.8, None
        else:
            times = value / values["grpcio"]
            ratio = f"{share}; {times:.1f} × grpcio (target ≥ 4 ×)"
            met, target = times >= 4, at_least(20_000)
        bench.add(Figure("P5", what, value, Unit.CALLS, target, ratio=ratio, ratio_met=met))
