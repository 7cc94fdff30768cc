"""Limits of groups over a real server: their rates, and times until which they let nothing out."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

from jobline import AsyncClient, GroupSettings, ObstacleKind, QueueSettings, RateLimit
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer, running_server
from tests.e2e.test_limits import kinds, now_of, somebody_waits

RATED = GroupSettings(rate=RateLimit(rate=1, period=5), concurrency=9)


async def push(client: AsyncClient, *groups: str) -> list[int]:
    return [(await client.push("mail", b"x", group=group)).id for group in groups]


async def test_tokens_of_a_group_come_by_themselves(
    server: RunningServer, client: AsyncClient
) -> None:
    """A waiting consumer gets its next job, and others are not held up."""
    await client.queues.update("mail", QueueSettings(group=RATED))
    first, second, other = await push(client, "a", "a", "b")
    assert [job.id for job in await client.pull("mail", max_jobs=10, wait=0)] == [first, other]
    assert ObstacleKind.RATE_LIMITED in await kinds(client, second)
    (group,) = [one async for one in client.queues.groups.list("mail", "a")]
    assert (group.tokens, group.limited_until) == (0, None)
    waiting = asyncio.create_task(client.pull("mail", max_jobs=10, wait=60))
    await somebody_waits(server)
    server.advance(5_000)
    assert [job.id for job in await waiting] == [second]


async def test_a_worker_says_until_when_its_group_is_limited(
    server: RunningServer, client: AsyncClient
) -> None:
    """429 for one customer: the others go on."""
    first, other = await push(client, "a", "b")
    pulled = await client.pull("mail", max_jobs=1, wait=0)
    until = now_of(server) + timedelta(seconds=30)
    await client.release(pulled[0], why="limited", until=until)
    assert [job.id for job in await client.pull("mail", max_jobs=9, wait=0)] == [other]
    assert ObstacleKind.LIMITED_FOR_A_TIME in await kinds(client, first)
    assert (await client.queues.get("mail")).limited_until is None
    waiting = asyncio.create_task(client.pull("mail", wait=60))
    await somebody_waits(server)
    server.advance(30_000)
    assert [job.id for job in await waiting] == [first]


async def test_an_operator_limits_a_group(server: RunningServer, client: AsyncClient) -> None:
    (first,) = await push(client, "a")
    until = now_of(server) + timedelta(days=1)
    group = await client.queues.groups.limit("mail", "a", until, reason="closed")
    assert (group.limited_until, group.limited_reason) == (until, "closed")
    assert await client.pull("mail", wait=0) == []
    assert (await client.queues.groups.limit("mail", "a", None)).limited_until is None
    assert [job.id for job in await client.pull("mail", wait=0)] == [first]


async def test_limits_of_groups_outlive_the_process(tmp_path: Path) -> None:
    """G14: a restart lets nothing out at once, and closed groups go on by themselves."""
    clock = ManualClock()
    async with running_server(tmp_path, clock=clock) as server, AsyncClient(server.address) as one:
        await one.queues.update("mail", QueueSettings(group=RATED))
        _, second, _, limited = await push(one, "a", "a", "b", "c")
        await one.queues.groups.limit("mail", "c", now_of(server) + timedelta(seconds=60))
        assert len(await one.pull("mail", max_jobs=9, wait=0)) == 2
        await push(one, "b")
    async with running_server(tmp_path, clock=clock) as server, AsyncClient(server.address) as one:
        assert await one.pull("mail", max_jobs=9, wait=0) == []
        waiting = asyncio.create_task(one.pull("mail", max_jobs=9, wait=60))
        await somebody_waits(server)
        server.advance(5_000)
        got = [job.id for job in await waiting]
        assert second in got
        assert limited not in got
        server.advance(55_000)
        assert limited in [job.id for job in await one.pull("mail", max_jobs=9, wait=30)]
