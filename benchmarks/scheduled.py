"""P12: a hundred thousand schedules, or fewer. One costs what it cost when there were few: to
create it, to keep it, to start with it, and when its time comes.

All of them are due at the same moment, once: the worst for the server, which has to push as many
jobs in slices. Each is anchored at that moment, so none is due while they are created.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter, time
from typing import Any

from grpc import aio

from benchmarks.bench import Bench, Running
from benchmarks.figures import Figure, Unit, at_most
from benchmarks.h2load import LoadFailed
from benchmarks.wire import OPTIONS
from jobline.v1 import schedule_service_pb2 as pb

SCHEDULES = 100_000
FEW_SHARE = 10
CALLERS = 64
CREATE = "/jobline.v1.ScheduleService/CreateSchedule"
QUEUES = 100
# To create a schedule takes less than this, and to start with all of them less than the second.
EACH_SECONDS_MAX = 0.0008
AHEAD_SECONDS = 30.0
TICKS_SECONDS_MAX = 180.0
STALL_SECONDS_MAX = 0.050
FLAT_MAX = 1.5
BYTES_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Costs:
    """What schedules cost: the processor's seconds of a create and of a tick, bytes of memory of
    each, seconds of a start, and the longest stall of the loop while they were due.
    """

    create: float
    tick: float
    size: float
    start: float
    stall: float


async def many_schedules(bench: Bench, schedules: int = SCHEDULES) -> None:
    """P12: creates, ticks, memory and a start, among few and among many: a tenth of them is few."""
    count = bench.scaled(schedules)
    few_count = count // FEW_SHARE
    empty = await _empty_start(bench)
    few, many = await _costs(bench, few_count), await _costs(bench, count)
    among = f"among {few_count:,}"
    rows = (
        ("create, of the processor", Unit.TIME, many.create, few.create, EACH_SECONDS_MAX),
        ("tick, of the processor", Unit.TIME, many.tick, few.tick, None),
        ("memory of each", Unit.BYTES, many.size, few.size, BYTES_MAX),
    )
    for what, unit, value, before, bound in rows:
        target = None if bound is None else at_most(bound)
        share = value / before
        figure = Figure(
            "P12",
            f"{count:,} schedules: {what}",
            value,
            unit,
            target,
            f"{share:.2f} × {among} (target ≤ {FLAT_MAX:g} ×)",
            ratio_met=share <= FLAT_MAX,
        )
        bench.add(figure)
    ratio = f"{many.start - empty:.2f} s more than an empty store"
    bench.add(Figure("P12", f"{count:,} schedules: start", many.start, Unit.TIME, ratio=ratio))
    what = f"{count:,} schedules due at once: longest stall of the loop"
    ratio = f"{many.stall / max(few.stall, 1e-6):.1f} × {among}"
    bench.add(Figure("P12", what, many.stall, Unit.TIME, at_most(STALL_SECONDS_MAX), ratio))


async def _empty_start(bench: Bench) -> float:
    async with bench.server("native") as server:
        return server.process.start_seconds


async def _costs(bench: Bench, count: int) -> Costs:
    data = bench.fresh_directory()
    due = time() + AHEAD_SECONDS + count * EACH_SECONDS_MAX
    try:
        async with bench.server_on(data, "native") as server:
            await _create(server, 100, due, "warm")
            await asyncio.sleep(1.0)
            memory, used = server.process.memory_bytes(), server.process.processor_seconds()
            await _create(server, count, due, "s")
            create = (server.process.processor_seconds() - used) / count
            await asyncio.sleep(1.0)
            size = (server.process.memory_bytes() - memory) / count
        async with bench.server_on(data, "native") as server:
            start = server.process.start_seconds
            if time() > due - 1.0:
                raise LoadFailed(f"{count} schedules were due before they were all there")
            await asyncio.sleep(due - 1.0 - time())
            tick, stall = await _ticks(server, count + 100)
        return Costs(create, tick, size, start, stall)
    finally:
        shutil.rmtree(data, ignore_errors=True)


async def _create(server: Running, count: int, due: float, name: str) -> None:
    """Creates schedules that are due at the same moment."""
    numbers: Iterator[int] = iter(range(count))
    async with aio.insecure_channel(server.address, options=OPTIONS) as channel:
        create: Any = channel.unary_unary(CREATE)

        async def caller() -> None:
            for number in numbers:
                request = pb.CreateScheduleRequest(schedule=f"{name}-{number}")
                settings = request.settings
                settings.queue = f"q{number % QUEUES}"
                settings.every.FromSeconds(86_400)
                settings.start.FromSeconds(int(due))
                settings.overlap = pb.SCHEDULE_OVERLAP_ALLOW
                settings.job.text = "x"
                await create(request.SerializeToString())

        await asyncio.gather(*(caller() for _ in range(CALLERS)))


async def _ticks(server: Running, count: int) -> tuple[float, float]:
    """Waits until all have pushed a job; returns the processor's seconds of each, and the stall."""
    used, began = server.process.processor_seconds(), perf_counter()
    while (stats := await server.wire.stats()).pushed_total < count:
        if perf_counter() - began > TICKS_SECONDS_MAX:
            raise LoadFailed(f"of {count} schedules {stats.pushed_total} have pushed a job")
        await asyncio.sleep(0.1)
    tick = (server.process.processor_seconds() - used) / count
    return tick, stats.loop_lag.ToTimedelta().total_seconds()
