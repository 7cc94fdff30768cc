"""P11: what a push, a pull and an ack cost when there is more of everything.

The measure is a cycle: push 1,000, pull 1,000, ack 1,000. It leaves as many jobs waiting as there
were, so that it can be held against the same cycle with fewer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from time import perf_counter

from benchmarks import bodies, machine
from benchmarks.bench import Bench, Running
from benchmarks.drains import acked, leases_of
from benchmarks.figures import Figure, Unit
from benchmarks.h2load import LoadFailed
from benchmarks.wire import Wire
from jobline.v1 import job_service_pb2

WAITING = (1_000, 100_000, 1_000_000, 3_000_000)
QUEUES = (1, 100, 10_000)
JOBS_IN_QUEUES = 1_000_000
CALLERS = 4
A_CALL = 1_000
# A journal of so few commits is folded; and one is folded at the latest when it is a minute old.
FOLDED_COMMITS = 100
FOLD_SECONDS_MAX = 120.0
# How much slower the largest may be than the smallest.
SLOWER_MAX = 0.20


async def grow(bench: Bench) -> None:
    """P11: with more waiting jobs, and with more queues."""
    await _waiting(bench)
    await _queues(bench)


async def _waiting(bench: Bench) -> None:
    async with bench.server("native") as server:
        rates: list[float] = []
        waiting = 0
        for level in [bench.scaled(level) for level in WAITING]:
            await server.wire.fill(level - waiting)
            waiting = level
            rates.append(await _rate(bench, server, ["bench"]))
            add_rate(bench, f"{CALLERS} callers, {level:,} jobs waiting", rates)
        if not bench.quick:
            # The jobs of the last level were still being written into tables.
            await _folded(server)
            rates.append(await _rate(bench, server, ["bench"]))
            add_rate(bench, f"{CALLERS} callers, {waiting:,} jobs waiting, all in tables", rates)


async def _folded(server: Running) -> None:
    """Waits for a checkpoint to take the journal in."""
    async with asyncio.timeout(FOLD_SECONDS_MAX):
        while True:
            shards = (await server.wire.stats()).shards
            if all(shard.offset - shard.checkpoint_offset < FOLDED_COMMITS for shard in shards):
                return
            await asyncio.sleep(0.5)


async def _queues(bench: Bench) -> None:
    rates: list[float] = []
    for number in [max(1, bench.scaled(queues)) for queues in QUEUES]:
        names = [f"bench-{index}" for index in range(number)]
        jobs = bench.scaled(JOBS_IN_QUEUES) // number
        async with bench.server("native") as server:
            await fill_queues(server.wire, names, jobs)
            rates.append(await _rate(bench, server, names))
        what = f"{CALLERS} callers, {number * jobs:,} jobs waiting in {number:,} queues"
        add_rate(bench, what, rates)


def add_rate(bench: Bench, what: str, rates: list[float]) -> None:
    """A figure beside the first of its kind."""
    ratio = rates[-1] / rates[0]
    is_first = len(rates) == 1
    bench.add(
        Figure(
            "P11",
            f"push + pull + ack, {A_CALL:,} a call, {what}",
            rates[-1],
            Unit.JOBS,
            ratio="" if is_first else f"{ratio:.0%} of the smallest (target ≥ 80%)",
            ratio_met=None if is_first else ratio >= 1 - SLOWER_MAX,
        )
    )


async def fill_queues(wire: Wire, names: list[str], jobs: int) -> None:
    """Pushes as many jobs to each of the queues."""
    before = (await wire.stats()).pushed_total
    left = iter(names)

    async def caller() -> None:
        for name in left:
            for first in range(0, jobs, 10_000):
                await wire.push(bodies.plain(min(10_000, jobs - first), name))

    await asyncio.gather(*(caller() for _ in range(16)))
    await wire.expect_pushed(before, jobs * len(names))


async def _rate(bench: Bench, server: Running, names: list[str]) -> float:
    """Cycles over the queues, one after another."""
    cycles = Cycles(server, names)
    machine.touch_memory()

    async def measure() -> float:
        end = perf_counter() + bench.seconds
        return await cycles.run(lambda _begun: perf_counter() >= end)

    return await bench.best(server, measure)


class Cycles:
    """Callers that push, pull and ack a thousand jobs over and over, round the queues."""

    def __init__(self, server: Running, names: list[str]) -> None:
        self._wire = server.wire
        payloads = [bodies.PAYLOAD] * A_CALL
        self._payloads = job_service_pb2.PushRequest(payloads=payloads).SerializeToString()
        # A message is the sum of its fields, so the queue can stand apart from its payloads.
        self._pushes = [
            job_service_pb2.PushRequest(queue=name).SerializeToString() for name in names
        ]
        self._pulls = [bodies.pull(A_CALL, runs=True, queue=name) for name in names]
        self._turns = count()

    async def run(self, is_over: Callable[[int], bool]) -> float:
        """Goes on until `is_over`, which is told how many cycles began; returns jobs a second."""
        begun = 0
        began = perf_counter()

        async def caller() -> None:
            nonlocal begun
            while not is_over(begun):
                begun += 1
                # The step is prime, so that neighbours meet other shards.
                turn = next(self._turns) * 7_919 % len(self._pulls)
                await cycle(self._wire, self._pushes[turn] + self._payloads, self._pulls[turn])

        await asyncio.gather(*(caller() for _ in range(CALLERS)))
        return begun * A_CALL / (perf_counter() - began)


async def cycle(wire: Wire, push: bytes, pull: bytes) -> None:
    """Pushes a thousand jobs, and pulls and acks as many."""
    await wire.push(push)
    ids, deliveries = leases_of(job_service_pb2.PullResponse.FromString(await wire.pull(pull)))
    if len(ids) != A_CALL:
        raise LoadFailed(f"a pull of {A_CALL} got {len(ids)} jobs")
    await acked(wire, ids, deliveries)
