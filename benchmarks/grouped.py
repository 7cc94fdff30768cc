"""P11: what a push, a pull and an ack of jobs of groups cost when there are more groups, and when
one group is deep.

The measure is that of `growth`: a cycle that leaves as many jobs waiting as there were.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from time import perf_counter

from benchmarks import bodies
from benchmarks.bench import Bench, Running
from benchmarks.growth import CALLERS, cycle
from benchmarks.turns import A_CALL, Load, add_larger, add_smallest
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
    few, many = [max(GROUPS_MIN, bench.scaled(groups)) for groups in GROUPS]
    async with _filled_groups(bench, few, fair=fair) as smallest:
        await add_smallest(bench, _what(few, kind), smallest)
        async with _filled_groups(bench, many, fair=fair) as larger:
            await add_larger(bench, _what(many, kind), smallest, larger)


def _what(groups: int, kind: str) -> str:
    return f"{CALLERS} callers, {groups * JOBS_A_GROUP:,} jobs waiting in {groups:,} {kind}"


@asynccontextmanager
async def _filled_groups(bench: Bench, number: int, *, fair: bool) -> AsyncIterator[Load]:
    names = [f"group-{index}" for index in range(number)]
    pushes = [_push(names[at : at + A_CALL]) for at in range(0, number, A_CALL)]
    async with bench.server("native") as server, AsyncClient(server.address) as client:
        await client.queues.update(bodies.QUEUE, fair=fair)
        await _fill(server, pushes * JOBS_A_GROUP)
        yield _load(bench, server, pushes, callers=CALLERS)


async def _depths(bench: Bench) -> None:
    flat, deep = [max(A_CALL, bench.scaled(depth)) for depth in DEPTHS]
    async with _filled_group(bench, flat) as smallest:
        await add_smallest(bench, f"1 caller, {flat:,} jobs waiting in 1 group", smallest)
        async with _filled_group(bench, deep) as larger:
            await add_larger(bench, f"1 caller, {deep:,} jobs waiting in 1 group", smallest, larger)


@asynccontextmanager
async def _filled_group(bench: Bench, depth: int) -> AsyncIterator[Load]:
    pushes = [_push(["group"] * A_CALL)]
    async with bench.server("native") as server, AsyncClient(server.address) as client:
        await client.queues.groups.update(bodies.QUEUE, "group", concurrency=TOGETHER)
        await _fill(server, pushes * (depth // A_CALL))
        yield _load(bench, server, pushes, callers=1)


def _push(groups: Sequence[str]) -> bytes:
    request = job_service_pb2.PushRequest(queue=bodies.QUEUE, groups=groups)
    request.payloads.extend([bodies.PAYLOAD] * len(groups))
    return request.SerializeToString()


async def _fill(server: Running, pushes: Sequence[bytes]) -> None:
    for push in pushes:
        await server.wire.push(push)
    await server.wire.expect_pushed(0, len(pushes) * A_CALL)


def _load(bench: Bench, server: Running, pushes: Sequence[bytes], *, callers: int) -> Load:
    """Cycles over the groups, one call's after another."""
    pull, turns = bodies.pull(A_CALL, runs=True), count()

    async def measure() -> float:
        began, begun = perf_counter(), 0

        async def caller() -> None:
            nonlocal begun
            while perf_counter() < began + bench.seconds:
                begun += 1
                await cycle(server.wire, pushes[next(turns) % len(pushes)], pull)

        await asyncio.gather(*(caller() for _ in range(callers)))
        return begun * A_CALL / (perf_counter() - began)

    return Load(server, measure)
