"""P1, P2 and P5: pushes, many jobs a call and one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

from benchmarks import bodies
from benchmarks.bench import TRANSPORTS, Bench, Running
from benchmarks.figures import Figure, Target, Unit, at_least, beside_floor
from benchmarks.h2load import Callers, LoadFailed

SIXTEEN = Callers(4, 4)
FOUR = Callers(4)
SIXTY_FOUR = Callers(8, 8)

# Jobs that are all different: more of them than the server could remember the options of.
TRACED_CALLS = 200

Traced = Callable[[int, int], bytes]
"""A push of so many jobs, each with a trace header that is numbered from the second argument on."""


@dataclass(frozen=True, slots=True)
class Pushes:
    """One push that is posted over and over; `share` is how much of an empty handler's rate it is
    to reach.
    """

    number: str
    what: str
    message: bytes
    jobs: int
    callers: Callers
    target: Target | None = None
    share: float | None = None


async def lots(bench: Bench) -> None:
    """P1: plain jobs, many a call."""
    for transport in TRANSPORTS:
        for jobs, callers, bound, share in (
            (1_000, SIXTEEN, 1_100_000, 0.35),
            (10_000, FOUR, 1_800_000, None),
        ):
            what, target = f"{jobs:,} plain jobs", at_least(bound)
            pushes = Pushes("P1", what, bodies.plain(jobs), jobs, callers, target, share)
            await _beside_floor(bench, transport, pushes)


async def _beside_floor(bench: Bench, transport: str, pushes: Pushes) -> None:
    async def rate(running: Running) -> float:
        return await bench.push_rate(
            running, pushes.message, jobs=pushes.jobs, callers=pushes.callers
        )

    async with bench.floor(transport) as floor:
        empty = await rate(floor)
    async with bench.server(transport) as server:
        value = await rate(server)
    share = pushes.share
    bench.add(
        Figure(
            pushes.number,
            f"push, {pushes.what} a call, {pushes.callers} callers, {transport}",
            value,
            Unit.JOBS,
            pushes.target,
            ratio=beside_floor(value, empty) + (f" (target ≥ {share:.0%})" if share else ""),
            ratio_met=value / empty >= share if share else None,
        )
    )


async def rows(bench: Bench) -> None:
    """P2: jobs with options of their own; and few jobs a call."""
    own = "1,000 jobs with options of their own"
    with_options = Pushes("P2", own, bodies.rows(1_000), 1_000, SIXTEEN, at_least(300_000))
    for transport in TRANSPORTS:
        await _beside_floor(bench, transport, with_options)
    for body, how, target in (
        (bodies.traced_rows, "", None),
        (bodies.traced_columns, " beside its payload", at_least(250_000)),
    ):
        async with bench.floor("native") as floor:
            empty = await traced(bench, floor, body)
        async with bench.server("native") as server:
            value = await traced(bench, server, body)
        what = f"the same, a trace header of its own in every job{how}, {FOUR} callers, native"
        ratio, note = beside_floor(value, empty), "bodies posted by Python"
        bench.add(Figure("P2", what, value, Unit.JOBS, target, ratio, note=note))
    few = Pushes("P2", "10 plain jobs", bodies.plain(10), 10, SIXTY_FOUR)
    await _beside_floor(bench, "native", replace(few, target=at_least(120_000)))
    await _beside_floor(bench, "grpcio", few)


async def traced(bench: Bench, running: Running, body: Traced) -> float:
    """Jobs a second of pushes of which no two are alike."""
    calls = bench.scaled(TRACED_CALLS)
    return await bench.best(running, lambda: push_traced(running, calls, body))


async def push_traced(running: Running, calls: int, body: Traced = bodies.traced_rows) -> float:
    """The same, measured once."""
    before = await running.arrived()
    messages = [body(1_000, before + 1_000 * call) for call in range(calls)]
    left = iter(messages)

    async def caller() -> None:
        for message in left:
            await running.wire.push(message)

    began = perf_counter()
    await asyncio.gather(*(caller() for _ in range(4)))
    seconds = perf_counter() - began
    arrived = await running.arrived() - before
    if arrived != calls * (1 if running.is_floor else 1_000):
        raise LoadFailed(f"{calls} calls of 1,000 jobs were made, and {arrived} arrived")
    return 1_000 * calls / seconds


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
        share = f"{beside_floor(value, empty)} ({empty:,.0f}/s)"
        what = f"push, one job a call, {SIXTY_FOUR} calls at once, {transport}"
        if transport == "grpcio":
            ratio, met, target = f"{share} (target ≥ 80%)", value / empty >= 0.8, None
        else:
            times = value / values["grpcio"]
            ratio = f"{share}; {times:.1f} × grpcio (target ≥ 4 ×)"
            met, target = times >= 4, at_least(20_000)
        bench.add(Figure("P5", what, value, Unit.CALLS, target, ratio=ratio, ratio_met=met))
