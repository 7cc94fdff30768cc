"""Calls all rows, and adds a figure for each RPC: the longest step of the loop among its calls."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import perf_counter

from grpc import aio

from benchmarks.bench import Bench, Running
from benchmarks.figures import Figure, Unit, at_most
from benchmarks.h2load import LoadFailed
from benchmarks.million.calls import CALLS, Call
from benchmarks.million.stepping import Steps
from benchmarks.million.worlds import World, fill
from benchmarks.wire import OPTIONS

JOBS = 1_000_000
STEP_SECONDS_MAX = 0.020
# What a call left to do is done by then, or goes on in steps like those that were seen.
AFTER_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Measured:
    """A call: its longest step of the loop, and how long it took in all."""

    call: Call
    step: float
    seconds: float


async def act_on_many(bench: Bench, jobs: int = JOBS) -> None:
    """P15: each call of operators, and each list, with many jobs of each kind."""
    file = bench.fresh_directory().with_suffix(".steps")
    steps = Steps(file, make=True)
    jobs = bench.scaled(jobs)
    module = f"benchmarks.million.stepping {file}"
    async with (
        _server(bench, module.split()) as server,
        aio.insecure_channel(server.address, options=OPTIONS) as channel,
    ):
        world = World(server, channel, jobs)
        await fill(world)
        found = await _call_all(world, steps)
    file.unlink()
    _add_figures(bench, jobs, found)


@asynccontextmanager
async def _server(bench: Bench, words: list[str]) -> AsyncIterator[Running]:
    data = bench.fresh_directory()
    try:
        async with bench.server_on(data, "native", module=words) as running:
            yield running
    finally:
        shutil.rmtree(data, ignore_errors=True)


async def _call_all(world: World, steps: Steps) -> list[Measured]:
    found: list[Measured] = []
    watching: asyncio.Task[int] | None = None
    for call in CALLS:
        if watching is None and call.rpc.endswith("CancelJobs"):
            watching = asyncio.create_task(_watch(world))
        found.append(await _measure(world, steps, call))
    if watching is not None:
        watching.cancel()
    return found


async def _measure(world: World, steps: Steps, call: Call) -> Measured:
    request = call.request(world)
    steps.take()
    began = perf_counter()
    try:
        reply = await world.call(call.rpc, request)
    except aio.AioRpcError as error:
        raise LoadFailed(f"{call.key}: {error.code().name} {error.details()}") from error
    seconds = perf_counter() - began
    await asyncio.sleep(AFTER_SECONDS)
    step, where = steps.take()
    world.operations[call.key] = getattr(reply, "operation_id", "")
    if step > STEP_SECONDS_MAX:
        sys.stderr.write(f"      {call.key}: {step * 1e3:.1f} ms in {where}\n")
    return Measured(call, step, seconds)


async def _watch(world: World) -> int:
    """Reads all events, as columns; returns how many frames there were."""
    frames = 0
    request = b"\x28\x01"  # accepts_runs
    try:
        async for _ in world.server.wire.watch(request):
            frames += 1
    except aio.AioRpcError:
        pass  # it was too slow, and may resume
    return frames


def _add_figures(bench: Bench, jobs: int, found: list[Measured]) -> None:
    by_rpc: dict[str, list[Measured]] = {}
    for one in found:
        by_rpc.setdefault(one.call.rpc, []).append(one)
    for rpc, calls in by_rpc.items():
        worst = max(calls, key=lambda one: one.step)
        slowest = max(calls, key=lambda one: one.seconds)
        note = f"{len(calls)} calls, the longest of {slowest.seconds:.2g} s ({slowest.call.what})"
        if len(calls) == 1:
            note = f"{worst.seconds:.2g} s in all"
        what = (
            f"longest step, {jobs:,} jobs of each kind: {rpc.rpartition('/')[2]}, {worst.call.what}"
        )
        target = at_most(STEP_SECONDS_MAX)
        bench.add(Figure("P15", what, worst.step, Unit.TIME, target, note=note))
