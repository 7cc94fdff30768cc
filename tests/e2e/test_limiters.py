"""Named limiters over a real server: shared by queues, emptied by workers, kept over restarts."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from jobline import (
    AsyncClient,
    InvalidArgument,
    LimiterNotFound,
    ObstacleKind,
    RateLimit,
    SettleOutcome,
)
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer, running_server
from tests.e2e.test_limits import kinds, now_of, somebody_waits


async def test_queues_share_a_limiter(server: RunningServer, client: AsyncClient) -> None:
    """A waiting consumer of another queue, in another shard, gets the place that becomes free."""
    await client.limiters.upsert("api", concurrency=1)
    await client.push("orders", b"x", limiters=["api"])
    pushed = await client.push("mail", b"x", limiters=["api"])
    (job,) = await client.pull("orders", wait=0)
    assert (await client.limiters.get("api")).active == 1
    assert ObstacleKind.LIMITER in await kinds(client, pushed.id)
    waiting = asyncio.create_task(client.pull("mail", wait=60))
    await somebody_waits(server)
    await client.ack(job)
    assert [job.id for job in await waiting] == [pushed.id]


async def test_tokens_come_by_themselves(server: RunningServer, client: AsyncClient) -> None:
    await client.limiters.upsert("api", rate=RateLimit(rate=1, period=5, burst=2))
    await client.push_payloads("mail", [b"x"] * 5, limiters=["api"])
    assert len(await client.pull("mail", max_jobs=10, wait=0)) == 2
    waiting = asyncio.create_task(client.pull("mail", max_jobs=10, wait=60))
    await somebody_waits(server)
    server.advance(5_000)
    assert len(await waiting) == 1


async def test_a_worker_says_until_when_a_limiter_is_empty(
    server: RunningServer, client: AsyncClient
) -> None:
    """429: try again later. Nobody else runs into it meanwhile."""
    await client.limiters.upsert("api", concurrency=9)
    await client.push("mail", b"x", limiters=["api"])
    await client.push("orders", b"x", limiters=["api"])
    (job,) = await client.pull("mail", wait=0)
    until = now_of(server) + timedelta(seconds=30)
    told = await client.release(job, why="limited", until=until, limiter="api")
    assert told == [SettleOutcome.DONE]
    limiter = await client.limiters.get("api")
    assert (limiter.limited_until, limiter.active) == (until, 0)
    for queue in ("mail", "orders"):
        assert await client.pull(queue, wait=0) == []
    server.advance(30_000)
    for queue in ("mail", "orders"):
        assert len(await client.pull(queue, wait=5)) == 1


async def test_a_worker_empties_no_limiter_that_its_job_does_not_pass(
    server: RunningServer, client: AsyncClient
) -> None:
    """Neither does one that lost its lease; the job stays with its worker."""
    for name in ("api", "other"):
        await client.limiters.upsert(name, concurrency=9)
    await client.push_payloads("mail", [b"x"] * 2, limiters=["api"])
    first, second = await client.pull("mail", max_jobs=2, wait=0)
    until = now_of(server) + timedelta(seconds=30)
    for limiter in ("other", "nowhere"):
        with pytest.raises(InvalidArgument, match=r"items\[0\].limiter.*none of those"):
            await client.release(first, why="limited", until=until, limiter=limiter)
    assert await client.ack(first, second) == [SettleOutcome.DONE] * 2
    told = await client.release(first, why="limited", until=until, limiter="other")
    assert told == [SettleOutcome.LEASE_LOST]
    assert (await client.limiters.get("other")).limited_until is None


async def test_a_worker_that_does_not_say_until_when_hears_what_is_missing(
    client: AsyncClient,
) -> None:
    await client.push("mail", b"x")
    (job,) = await client.pull("mail", wait=0)
    with pytest.raises(InvalidArgument, match="until: is needed"):
        await client.release(job, why="limited")
    assert await client.ack(job) == [SettleOutcome.DONE]


async def test_limiter_without_a_name_is_told_what_names_look_like(client: AsyncClient) -> None:
    with pytest.raises(InvalidArgument, match=r"limiter: is empty.*must be 1 to 256 of A-Z"):
        await client.limiters.upsert("", concurrency=1)
    await client.limiters.upsert("api", concurrency=1)
    with pytest.raises(InvalidArgument, match=r"options.limiters\[0\].*must be 1 to 256 of A-Z"):
        await client.push("mail", b"x", limiters=[""])


async def test_a_worker_says_until_when_its_queue_is_limited(
    server: RunningServer, client: AsyncClient
) -> None:
    await client.push("mail", b"x")
    (job,) = await client.pull("mail", wait=0)
    until = now_of(server) + timedelta(seconds=30)
    await client.release(job, why="limited", until=until)
    assert (await client.queues.get("mail")).limited_until == until
    assert await client.pull("mail", wait=0) == []


async def test_limiters_are_looked_after(server: RunningServer, client: AsyncClient) -> None:
    """Listed, emptied, deleted: then the jobs that name one go free."""
    for name in ("disk", "api"):
        await client.limiters.upsert(name, concurrency=1)
    assert [limiter.name async for limiter in client.limiters.list(page_size=1)] == ["api", "disk"]
    await client.push_payloads("mail", [b"x"] * 3, limiters=["api"])
    assert len(await client.pull("mail", max_jobs=10, wait=0)) == 1
    tomorrow = now_of(server) + timedelta(days=1)
    limiter = await client.limiters.empty("api", tomorrow, reason="closed")
    assert limiter.limited_reason == "closed"
    assert (await client.limiters.empty("api", None)).limited_until is None
    await client.limiters.delete("api")
    assert len(await client.pull("mail", max_jobs=10, wait=5)) == 2
    with pytest.raises(LimiterNotFound):
        await client.limiters.get("api")
    with pytest.raises(LimiterNotFound):
        await client.push("mail", b"x", limiters=["api"])


async def test_limiters_outlive_the_process(tmp_path: Path) -> None:
    """G14: what is active counts, and a restart lets nothing more out."""
    clock = ManualClock()
    async with running_server(tmp_path, clock=clock) as server, AsyncClient(server.address) as one:
        await one.limiters.upsert("api", concurrency=1)
        await one.limiters.upsert("calls", rate=RateLimit(rate=1, period=5, burst=3))
        for name in ("api", "calls"):
            await one.push_payloads(name, [b"x"] * 9, limiters=[name])
        assert len(await one.pull("api", max_jobs=9, wait=0)) == 1
        assert len(await one.pull("calls", max_jobs=9, wait=0)) == 3
    async with running_server(tmp_path, clock=clock) as server, AsyncClient(server.address) as one:
        assert (await one.limiters.get("api")).active == 1
        for name in ("api", "calls"):
            assert await one.pull(name, max_jobs=9, wait=0) == []
        server.advance(5_000)
        assert len(await one.pull("calls", max_jobs=9, wait=5)) == 1
