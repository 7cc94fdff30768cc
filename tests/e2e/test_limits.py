"""Limits of queues over a real server: consumers wait, and are served when they may be."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobline import AsyncClient, ObstacleKind, QueueFull, QueueSettings, RateLimit
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer, running_server


def now_of(server: RunningServer) -> datetime:
    """What the clock of the server says."""
    return datetime.fromtimestamp(server.runtime.core.clock.now().wall_ms / 1_000, UTC)


async def somebody_waits(server: RunningServer) -> None:
    """A pull of the queue `mail` has arrived."""
    async with asyncio.timeout(5):
        while not server.runtime.core.rings.consumers("mail"):  # noqa: ASYNC110  # a ring has no event
            await asyncio.sleep(0.001)


async def kinds(client: AsyncClient, job_id: int) -> list[ObstacleKind]:
    """What keeps a job from running."""
    return [obstacle.kind for obstacle in (await client.jobs.explain(job_id)).obstacles]


async def test_a_waiting_pull_gets_the_next_token(
    server: RunningServer, client: AsyncClient
) -> None:
    """Predecessors: flashQ's batch pulls ignored the rate limit."""
    await client.queues.update("mail", rate=RateLimit(rate=1, period=5, burst=2))
    lot = await client.push_payloads("mail", [b"x"] * 4)
    assert len(await client.pull("mail", max_jobs=10, wait=0)) == 2
    assert await client.pull("mail", max_jobs=10, wait=0) == []
    assert (await client.queues.get("mail")).tokens == 0
    assert ObstacleKind.RATE_LIMITED in await kinds(client, lot.first_id + 2)
    waiting = asyncio.create_task(client.pull("mail", wait=60))
    await somebody_waits(server)
    server.advance(5_000)
    assert len(await waiting) == 1


async def test_a_waiting_pull_gets_the_place_of_a_job_that_ends(
    server: RunningServer, client: AsyncClient
) -> None:
    await client.queues.update("mail", concurrency=1)
    lot = await client.push_payloads("mail", [b"x"] * 2)
    (job,) = await client.pull("mail", max_jobs=10, wait=0)
    assert ObstacleKind.CONCURRENCY_LIMITED in await kinds(client, lot.first_id + 1)
    waiting = asyncio.create_task(client.pull("mail", wait=60))
    await somebody_waits(server)
    await client.ack(job)
    assert [job.id for job in await waiting] == [lot.first_id + 1]


async def test_a_queue_is_limited_for_a_time(server: RunningServer, client: AsyncClient) -> None:
    pushed = await client.push("mail", b"x")
    until = now_of(server) + timedelta(seconds=30)
    queue = await client.queues.limit("mail", until, reason="429")
    assert (queue.limited_until, queue.limited_reason) == (until, "429")
    assert ObstacleKind.LIMITED_FOR_A_TIME in await kinds(client, pushed.id)
    waiting = asyncio.create_task(client.pull("mail", wait=60))
    await somebody_waits(server)
    server.advance(30_000)
    assert len(await waiting) == 1
    assert (await client.queues.get("mail")).limited_until is None


async def test_a_queue_holds_no_more_bytes_than_it_may(client: AsyncClient) -> None:
    await client.queues.update("mail", max_waiting_bytes=10)
    await client.push("mail", b"x" * 6)
    with pytest.raises(QueueFull) as refused:
        await client.push("mail", b"x" * 5)
    assert refused.value.retry_after
    await client.push("mail", b"x" * 4)


async def test_limits_outlive_the_process(tmp_path: Path) -> None:
    """G14: a restart lets nothing more out; what is active counts."""
    clock = ManualClock()
    rate = RateLimit(rate=1, period=5, burst=3)
    async with running_server(tmp_path, clock=clock) as server, AsyncClient(server.address) as one:
        await one.queues.update("calls", QueueSettings(rate=rate))
        await one.queues.update("work", QueueSettings(concurrency=1))
        await one.queues.update("later", QueueSettings())
        await one.queues.limit("later", now_of(server) + timedelta(hours=1), reason="closed")
        for queue in ("calls", "work", "later"):
            await one.push_payloads(queue, [b"x"] * 9)
        assert len(await one.pull("calls", max_jobs=9, wait=0)) == 3
        assert len(await one.pull("work", max_jobs=9, wait=0)) == 1
    async with running_server(tmp_path, clock=clock) as server, AsyncClient(server.address) as one:
        assert (await one.queues.get("calls")).settings.rate is not None
        for queue in ("calls", "work", "later"):
            assert await one.pull(queue, max_jobs=9, wait=0) == []
        assert (await one.queues.get("later")).limited_reason == "closed"
        server.advance(5_000)
        assert len(await one.pull("calls", max_jobs=9, wait=0)) == 1
