"""Loads that take jobs and ack them: by calls, and by one stream. The worker does nothing per job.

What was received is read as a worker must, ids and deliveries and the number of payloads, and every
job that was acked is one that was received. Nothing is timed beyond the last ack's answer, which
comes after the commit that holds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from operator import itemgetter
from random import Random
from time import perf_counter
from typing import Any

from benchmarks import bodies
from benchmarks.bench import Running
from benchmarks.h2load import LoadFailed
from benchmarks.wire import Wire
from jobline.v1 import job_service_pb2 as jobs

Leases = tuple[list[int], list[int]]

ACKS_A_FRAME = 1_000
# Acks in random order are drawn from so many jobs that the worker has.
SHUFFLED = 4_000


def leases_of(reply: jobs.PullResponse | jobs.StreamResponse) -> Leases:
    """Ids and deliveries of all jobs of a reply."""
    ids: list[int] = []
    deliveries: list[int] = []
    for run in reply.runs:
        count = len(run.payloads)
        ids += range(run.first_id, run.first_id + count)
        deliveries += [run.delivery] * count
    if reply.jobs:
        ids += [job.id for job in reply.jobs]
        deliveries += [job.delivery for job in reply.jobs]
    return ids, deliveries


async def drain_by_calls(
    running: Running, count: int, *, callers: int, runs: bool, batch: int = 1_000
) -> float:
    """Pulls and acks a batch over and over until all are done; returns jobs a second."""
    wire, request = running.wire, bodies.pull(batch, runs=runs)
    done = 0

    async def caller() -> None:
        nonlocal done
        while done < count:
            ids, deliveries = leases_of(jobs.PullResponse.FromString(await wire.pull(request)))
            if not ids:
                return
            await acked(wire, ids, deliveries)
            done += len(ids)

    before = await running.completed()
    began = perf_counter()
    await asyncio.gather(*(caller() for _ in range(callers)))
    seconds = perf_counter() - began
    if not running.is_floor:
        await expect_completed(wire, before, count, done)
    return done / seconds


async def acked(wire: Wire, ids: Iterable[int], deliveries: Iterable[int]) -> None:
    """Acks, and fails if any job was not held."""
    reply = jobs.AckResponse.FromString(await wire.ack(bodies.acks(ids, deliveries)))
    if reply.exceptions:
        raise LoadFailed(f"an ack was refused: {reply.exceptions[0]}")


async def expect_completed(wire: Wire, before: int, count: int, done: int) -> None:
    """Fails if the server did not complete what was acked, or more was acked than there was."""
    completed = (await wire.stats()).completed_total - before
    if not count == done == completed:
        raise LoadFailed(f"of {count} jobs {done} were acked and {completed} are completed")


class StreamDrain:
    """One worker's stream: a task that reads and a task that acks."""

    def __init__(
        self, running: Running, count: int, *, window: int, runs: bool, shuffled: bool = False
    ) -> None:
        self._running = running
        self._count = count
        self._window = window
        self._runs = runs
        self._shuffled = shuffled
        self._received: asyncio.Queue[Leases | None] = asyncio.Queue()
        self._sent = 0
        self._confirmed = 0

    async def run(self) -> float:
        """Drains the queue; returns jobs a second."""
        before = await self._running.completed()
        began = perf_counter()
        call = self._running.wire.stream()
        await call.write(bodies.opening(self._window, runs=self._runs))
        writing = asyncio.create_task(self._write(call))
        try:
            await self._read(call)
            await writing
            seconds = perf_counter() - began
        finally:
            writing.cancel()
            call.cancel()
        if not self._running.is_floor:
            await expect_completed(self._running.wire, before, self._count, self._count)
        return self._count / seconds

    async def _read(self, call: Any) -> None:
        """Reads until every job came and every settle is confirmed."""
        received = 0
        while received < self._count or self._confirmed < self._sent or not self._sent:
            frame = jobs.StreamResponse.FromString(await call.read())
            for confirm in frame.confirms:
                self._confirmed = confirm.seq
                if confirm.exceptions:
                    raise LoadFailed(f"an ack was refused: {confirm.exceptions[0]}")
            leases = leases_of(frame)
            if leases[0]:
                received += len(leases[0])
                self._received.put_nowait(leases)
            if received == self._count:
                self._received.put_nowait(None)

    async def _write(self, call: Any) -> None:
        shuffle = Shuffle() if self._shuffled else None
        while (leases := await self._received.get()) is not None:
            for ids, deliveries in shuffle.feed(leases) if shuffle else (leases,):
                await self._settle(call, ids, deliveries)
        for ids, deliveries in shuffle.rest() if shuffle else ():
            await self._settle(call, ids, deliveries)

    async def _settle(self, call: Any, ids: Iterable[int], deliveries: Iterable[int]) -> None:
        self._sent += 1
        await call.write(bodies.settle(self._sent, ids, deliveries))


class Shuffle:
    """Acks in an order that has nothing to do with the order of the jobs. The order was drawn
    before, because drawing lots costs the worker more than the acks do.
    """

    def __init__(self) -> None:
        order = list(range(SHUFFLED))
        Random(1).shuffle(order)
        parts = range(0, SHUFFLED, ACKS_A_FRAME)
        self._orders = [itemgetter(*order[part : part + ACKS_A_FRAME]) for part in parts]
        self._ids: list[int] = []
        self._deliveries: list[int] = []

    def feed(self, leases: Leases) -> Iterable[tuple[Iterable[int], Iterable[int]]]:
        """Takes jobs; returns the acks that are due."""
        self._ids += leases[0]
        self._deliveries += leases[1]
        while len(self._ids) >= SHUFFLED:
            for order in self._orders:
                yield order(self._ids), order(self._deliveries)
            del self._ids[:SHUFFLED], self._deliveries[:SHUFFLED]

    def rest(self) -> Iterable[tuple[Iterable[int], Iterable[int]]]:
        """The last ones."""
        if self._ids:
            yield self._ids, self._deliveries
