"""P11: what a push, a pull and an ack of jobs of groups cost when there are more groups, and when
one group is deep.

The measure is that of `growth`: a cycle that leaves as many jobs waiting as there were.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count
from time import perf_counter

from benchmarks import bodies, machine
from benchmarks.bench import Bench, Running
from benchmarks.growth import A_CALL, CALLERS, add_rate, cycle
from jobline import AsyncClient
from jobline.v1 import job_service_pb2

# More than the callers hold at a time, as a group lets one job run.
GROUPS_MIN = 2 * CALLERS * A_CALL
GROUPS = (GROUPS_MIN, 100_000)
JOBS_A_GROUP = 5
DEPTHS = (1_000, 95_000)
# As many as may run at a time; a group of its own lets one run.
TOGETHER = 1_000


async def grow(bench: Bench) -> None:
    """P11: with more groups, with more tenants, and with a deeper group."""
    await _groups(bench, "groups", fair=False)
    await _groups(bench, "tenants of a fair queue", fair=True)
    await _depths(bench)


async def _groups(bench: Bench, kind: str, *, fair: bool) -> None:
    rates: list[float] = []
    for number in [max(GROUPS_MIN, bench.scaled(groups)) for groups in GROUPS]:
        names = [f"group-{index}" for index in range(number)]
        pushes = [_push(names[at : at + A_CALL]) for at in range(0, number, A_CALL)]
        async with bench.server("native") as server, AsyncClient(server.address) as client:
            await client.queues.update(bodies.QUEUE, fair=fair)
            await _fill(server, pushes * JOBS_A_GROUP)
            rates.append(await _rate(bench, server, pushes, callers=CALLERS))
        what = f"{CALLERS} callers, {number * JOBS_A_GROUP:,} jobs waiting in {number:,} {kind}"
        add_rate(bench, what, rates)


async def _depths(bench: Bench) -> None:
    rates: list[float] = []
    for depth in [max(A_CALL, bench.scaled(depth)) for depth in DEPTHS]:
        pushes = [_push(["group"] * A_CALL)]
        async with bench.server("native") as server, AsyncClient(server.address) as client:
            await client.queues.groups.update(bodies.QUEUE, "group", concurrency=TOGETHER)
            await _fill(server, pushes * (depth // A_CALL))
            rates.append(await _rate(bench, server, pushes, callers=1))
        add_rate(bench, f"1 caller, {depth:,} jobs waiting in 1 group", rates)


def _push(groups: Sequence[str]) -> bytes:
    request = job_service_pb2.PushRequest(queue=bodies.QUEUE, groups=groups)
    request.payloads.extend([bodies.PAYLOAD] * len(groups))
    return request.SerializeToString()


async def _fill(server: Running, pushes: Sequence[bytes]) -> None:
    for push in pushes:
        await server.wire.push(push)
    await server.wire.expect_pushed(0, len(pushes) * A_CALL)


async def _rate(bench: Bench, server: Running, pushes: Sequence[bytes], *, callers: int) -> float:
    """Cycles over the groups, one call's after another; returns jobs a second."""
    pull, turns = bodies.pull(A_CALL, runs=True), count()
    machine.touch_memory()

    async def measure() -> float:
        began, begun = perf_counter(), 0

        async def caller() -> None:
            nonlocal begun
            while perf_counter() < began + bench.seconds:
                begun += 1
                await cycle(server.wire, pushes[next(turns) % len(pushes)], pull)

        await asyncio.gather(*(caller() for _ in range(callers)))
        return begun * A_CALL / (perf_counter() - began)

    return await bench.best(server, measure)
