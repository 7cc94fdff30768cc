"""Jobs that take several places, and jobs for newer workers, by the client."""

from __future__ import annotations

import asyncio
from pathlib import Path

from jobline import AsyncClient, JobOptions, JobState, ObstacleKind, Worker
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer, running_server


async def test_a_worker_gets_what_its_version_may_have(client: AsyncClient) -> None:
    """1.10 is newer than 1.9; a pull has no version."""
    newer = await client.push("mail", b"newer", min_worker_version="1.10")
    plain = await client.push("mail", b"plain")
    taken: list[tuple[str, int]] = []

    async def work(version: str) -> None:
        worker = Worker(client.target, version=version)

        @worker.handler("mail")
        async def handle(payload: bytes, context) -> None:
            taken.append((version, context.job.id))

        await worker.serve(exit_when_idle=0.3)

    await work("1.9")
    assert taken == [("1.9", plain.id)]
    assert await client.pull("mail") == []
    await work("1.10")
    assert taken[1:] == [("1.10", newer.id)]


async def test_large_jobs_fill_a_window(client: AsyncClient) -> None:
    """Of four places two jobs of two; a third waits, and says why."""
    at_once: list[int] = []
    two, go = asyncio.Event(), asyncio.Event()
    worker = Worker(client.target, concurrency=4, window=4)

    @worker.handler("mail")
    async def handle(payload: bytes, context) -> None:
        at_once.append(context.job.id)
        if len(at_once) == 2:
            two.set()
        await go.wait()

    lot = await client.push_payloads("mail", [b"x"] * 3, options=JobOptions(slots=2))
    serving = asyncio.create_task(worker.serve())
    await two.wait()
    explained = await client.jobs.explain(lot.ids[2])
    assert ObstacleKind.WORKERS_BUSY in [one.kind for one in explained.obstacles]
    assert (await client.queues.get("mail")).counts.active == 2
    go.set()
    ends = [end async for end in client.wait(*lot.ids, timeout=20)]
    assert {end.state for end in ends} == {JobState.COMPLETED}
    worker.stop()
    await serving


async def test_versions_and_slots_outlive_the_process(tmp_path: Path) -> None:
    """A restart hands nothing to a worker that may not have it."""
    clock = ManualClock()
    options = JobOptions(min_worker_version="2", slots=5)
    async with (
        running_server(tmp_path, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        pushed = await client.push("mail", b"x", options=options)
    async with (
        running_server(tmp_path, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        assert (await client.jobs.get(pushed.id)).options == options
        assert await client.pull("mail") == []


async def test_pulls_count_places(client: AsyncClient, server: RunningServer) -> None:
    """A pull of four takes two jobs of two."""
    await client.push_payloads("mail", [b"x"] * 3, options=JobOptions(slots=2))
    assert len(await client.pull("mail", max_jobs=4)) == 2
    assert len(await client.pull("mail", max_jobs=1)) == 1
