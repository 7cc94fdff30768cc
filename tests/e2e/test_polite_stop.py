"""SIGTERM with work in hand costs no job anything (G21): no repeat, no attempt, no stall."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jobline import AsyncClient, JobState, Worker
from jobline_server.testing import ServerProcess


class Slow:
    """A worker whose one job ends when the test says so."""

    def __init__(self, address: str) -> None:
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.runs = 0
        self.worker = Worker(address, concurrency=1)
        self.worker.handler("mail")(self.handle)

    async def handle(self, _payload: object) -> str:
        self.runs += 1
        self.begun.set()
        await self.may_end.wait()
        return "done"


@asynccontextmanager
async def working(address: str) -> AsyncIterator[Slow]:
    slow = Slow(address)
    serving = asyncio.create_task(slow.worker.serve())
    try:
        yield slow
    finally:
        slow.may_end.set()
        slow.worker.stop()
        await serving


@pytest.mark.parametrize("drain_seconds", [600, 0], ids=["has time", "has none"])
async def test_stop_with_a_job_in_hand_costs_it_nothing(tmp_path: Path, drain_seconds: int) -> None:
    """The job ends while the server drains, or, where it may not, after the next start."""
    server = ServerProcess(tmp_path / "data", drain_seconds=drain_seconds)
    async with (
        server,
        AsyncClient(server.address) as client,
        working(server.address) as slow,
    ):
        job_id = (await client.push("mail", b"x")).id
        await slow.begun.wait()
        server.signal(signal.SIGTERM)
        if drain_seconds:
            slow.may_end.set()
        assert await server.wait() == 0
        await server.start()
        slow.may_end.set()
        end = await client.wait_one(job_id)
        job = await client.jobs.get(job_id)
    assert end.state is JobState.COMPLETED
    assert (job.failed, job.stalls, job.releases, slow.runs) == (0, 0, 0, 1)
