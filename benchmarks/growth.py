"""P11: what a push, a pull and an ack cost when there is more of everything.

The measure is a cycle: push 1,000, pull 1,000, ack 1,000. It leaves as many jobs waiting as there
were, so that it can be held against the same cycle with fewer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from time import perf_counter

from benchmarks import bodies
from benchmarks.bench import Bench, Running
from benchmarks.drains import acked, leases_of
from benchmarks.h2load import LoadFailed
from benchmarks.turns import A_CALL, Load, add_larger, add_smallest
from benchmarks.wire import Wire
from jobline import AsyncClient, Retention
from jobline.cli.output import counted
from jobline.v1 import job_service_pb2

WAITING = (1_000, 100_000, 1_000_000, 3_000_000)
QUEUES = (1, 100, 10_000)
JOBS_IN_QUEUES = 1_000_000
# A queue completes fewer here.
COMPLETED_JOBS_MAX = 10_000_000
CALLERS = 4
# A journal of so few commits is folded; and one is folded at the latest when it is a minute old.
FOLDED_COMMITS = 100
FOLD_SECONDS_MAX = 120.0


async def grow(bench: Bench) -> None:
    """P11: with more waiting jobs, and with more queues."""
    await _waiting(bench)
    await _queues(bench)


async def _waiting(bench: Bench) -> None:
    first, *more = [bench.scaled(level) for level in WAITING]
    async with bench.server("native") as small, bench.server("native") as large:
        smallest, larger = _load(bench, small, [bodies.QUEUE]), _load(bench, large, [bodies.QUEUE])
        await small.wire.fill(first)
        await add_smallest(bench, f"{CALLERS} callers, {first:,} jobs waiting", smallest)
        waiting = 0
        for level in more:
            await large.wire.fill(level - waiting)
            waiting = level
            what = f"{CALLERS} callers, {waiting:,} jobs waiting"
            await add_larger(bench, what, smallest, larger)
        if not bench.quick:
            # The jobs of the last level were still being written into tables.
            await _folded(large)
            await add_larger(bench, f"{what}, all in tables", smallest, larger)


async def _folded(server: Running) -> None:
    """Waits for a checkpoint to take the journal in."""
    async with asyncio.timeout(FOLD_SECONDS_MAX):
        while True:
            shards = (await server.wire.stats()).shards
            if all(shard.offset - shard.checkpoint_offset < FOLDED_COMMITS for shard in shards):
                return
            await asyncio.sleep(0.5)


async def _queues(bench: Bench) -> None:
    first, *more = [max(1, bench.scaled(queues)) for queues in QUEUES]
    async with _filled_queues(bench, first) as (what, smallest):
        await add_smallest(bench, what, smallest)
    for number in more:
        async with (
            _filled_queues(bench, first) as (_, smallest),
            _filled_queues(bench, number) as (what, larger),
        ):
            await add_larger(bench, what, smallest, larger)


@asynccontextmanager
async def _filled_queues(bench: Bench, number: int) -> AsyncIterator[tuple[str, Load]]:
    """A server with so many queues, and what it is called."""
    names = [f"bench-{index}" for index in range(number)]
    jobs = bench.scaled(JOBS_IN_QUEUES) // number
    async with bench.server("native") as server:
        await fill_queues(server.wire, names, jobs)
        # Many queues keep all that is completed here. One would keep 100,000 and write no others.
        async with AsyncClient(server.address) as client:
            await client.queues.update(names[0], retention=Retention(count=COMPLETED_JOBS_MAX))
        queues = counted(number, "queue")
        what = f"{CALLERS} callers, {number * jobs:,} jobs waiting in {queues}, all kept"
        yield what, _load(bench, server, names)


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


def _load(bench: Bench, server: Running, names: list[str]) -> Load:
    """Cycles over the queues, one after another."""
    cycles = Cycles(server, names)

    async def measure() -> float:
        end = perf_counter() + bench.seconds
        return await cycles.run(lambda _begun: perf_counter() >= end)

    return Load(server, measure)


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
    """Pushes a thousand jobs, and pulls and acks as many: a pull of a fair queue may get fewer."""
    await wire.push(push)
    left = A_CALL
    while left:
        # The last value of a field counts.
        most = job_service_pb2.PullRequest(max_jobs=left).SerializeToString()
        reply = job_service_pb2.PullResponse.FromString(await wire.pull(pull + most))
        ids, deliveries = leases_of(reply)
        if not ids:
            raise LoadFailed(f"{left} of {A_CALL} jobs were not there to be pulled")
        await acked(wire, ids, deliveries)
        left -= len(ids)
