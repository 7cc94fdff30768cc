"""Jobs with `delivery` ONCE in a worker: what has begun is never given back."""

from __future__ import annotations

import asyncio

from jobline import Worker
from jobline.v1 import job_pb2
from tests.client.live.tiny_store import ACTIVE, DEAD, READY
from tests.client.live.working import working

ONCE = job_pb2.DELIVERY_MODE_ONCE


async def test_a_stop_gives_back_what_has_not_begun_and_fails_what_has(tiny):
    """A handler that was cancelled has done something, and nobody knows how much."""
    worker = Worker(tiny.address, concurrency=1, window=3, soft_stop=0.01)
    started = asyncio.Event()

    @worker.handler("q")
    async def handle(payload):
        started.set()
        await asyncio.Event().wait()

    tiny.push("q", *[b""] * 3, delivery=ONCE, max_attempts=1)
    async with working(worker) as serving:
        await started.wait()
        await tiny.until(lambda: len(tiny.jobs(ACTIVE)) == 3)
        worker.stop()
        await serving
    (dead,) = tiny.jobs(DEAD)
    assert (dead.error.type, dead.releases) == ("Interrupted", [])
    assert len(tiny.jobs(READY)) == 2


async def test_a_handler_that_does_not_stop_keeps_its_job_from_others(tiny):
    """It is not settled at all: the server ends it when the worker is gone."""
    worker = Worker(tiny.address, concurrency=1, soft_stop=0.01, hard_stop=0.01)
    started, go = asyncio.Event(), asyncio.Event()

    @worker.handler("q")
    async def handle(payload):
        started.set()
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue

    tiny.push("q", b"", delivery=ONCE)
    async with working(worker) as serving:
        await started.wait()
        port = tiny.ports[0]
        worker.stop()
        await tiny.until(lambda: port.half_closed)
        go.set()
        await serving
    assert [entry.releases for entry in tiny.jobs()] == [[]]
    assert (worker.stats.done, worker.stats.released) == (0, 0)
