"""Groups over a real server: order across workers and restarts, and what operators do with them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jobline import (
    AsyncClient,
    GroupFull,
    GroupSettings,
    InvalidArgument,
    JobOptions,
    JobState,
    NewJob,
    ObstacleKind,
    OnDeadHead,
)
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer, running_server


async def kinds(client: AsyncClient, job_id: int) -> list[ObstacleKind]:
    """What keeps a job from running, but for workers that are not there."""
    found = [obstacle.kind for obstacle in (await client.jobs.explain(job_id)).obstacles]
    return [kind for kind in found if kind is not ObstacleKind.NO_WORKER]


async def test_jobs_of_a_group_run_one_at_a_time(client: AsyncClient) -> None:
    """G11: pushed by single calls at once, and pulled by two; other groups go on."""
    first, second, other = await asyncio.gather(
        client.push("mail", b"1", group="a"),
        client.push("mail", b"2", group="a"),
        client.push("mail", b"3", group="b"),
    )
    pulled = await client.pull("mail", max_jobs=10)
    assert [(job.id, job.group) for job in pulled] == [(first.id, "a"), (other.id, "b")]
    assert await client.pull("mail", max_jobs=10) == []
    explained = await client.jobs.explain(second.id)
    assert [one.kind for one in explained.obstacles][-1] is ObstacleKind.GROUP_BUSY
    waiting = asyncio.create_task(client.pull("mail", wait=30))
    await client.ack(pulled[0])
    assert [job.id for job in await waiting] == [second.id]


async def test_order_of_a_group_outlives_the_process(tmp_path: Path) -> None:
    """G11: a retry that waits holds its group in the next process; so do pauses and dead heads."""
    clock = ManualClock()
    async with (
        running_server(tmp_path, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        await client.queues.update("mail", group=GroupSettings(on_dead_head="hold"))
        ids = [job.id for job in await client.push_many("mail", [b"1", b"2", b"3"], group="a")]
        held = await client.push_many("mail", [b"1", b"2"], group="held", max_attempts=1)
        paused = await client.push("mail", b"1", group="paused")
        await client.queues.groups.pause("mail", "paused", reason="migration")
        job, dead = await client.pull("mail", max_jobs=10)
        await client.fail(job, "Boom", retry_after=60)
        await client.fail(dead, "Boom")
    async with (
        running_server(tmp_path, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        assert await client.pull("mail", max_jobs=10) == []
        assert await kinds(client, held[1].id) == [ObstacleKind.GROUP_HELD]
        assert await kinds(client, paused.id) == [ObstacleKind.GROUP_PAUSED]
        assert await kinds(client, ids[1]) == [ObstacleKind.GROUP_BUSY]
        groups = {group.group: group async for group in client.queues.groups.list("mail")}
        assert groups["held"].dead_heads == (held[0].id,)
        assert (groups["paused"].paused, groups["paused"].pause_reason) == (True, "migration")
        assert (groups["a"].ready, groups["a"].scheduled) == (2, 1)
        await client.queues.groups.resume("mail", "paused")
        assert [job.id for job in await client.pull("mail", max_jobs=10)] == [paused.id]
        await client.jobs.retry(held[0].id)
        assert [job.id for job in await client.pull("mail", max_jobs=10)] == [held[0].id]
        server.advance(60_000)
        order: list[int] = []
        while pulled := await client.pull("mail", wait=5 if not order else 0):
            order += [job.id for job in pulled]
            await client.ack(*pulled)
        assert [job_id for job_id in order if job_id in ids] == ids


async def test_operators_change_groups_and_find_their_jobs(client: AsyncClient) -> None:
    """Settings field by field; lists, dead letters and filter words know groups."""
    jobs = [NewJob(b"x", group=name) for name in ("a", "a", "b", "c")]
    pushed = await client.push_many("mail", jobs, max_attempts=1)
    group = await client.queues.groups.update("mail", "a", concurrency=2)
    group = await client.queues.groups.update("mail", "a", on_dead_head=OnDeadHead.HOLD)
    assert group.settings == GroupSettings(concurrency=2, on_dead_head=OnDeadHead.HOLD)
    assert (group.ready, group.active) == (2, 0)
    names = [group.group async for group in client.queues.groups.list("mail", page_size=2)]
    assert names == ["a", "b", "c"]
    assert [group.group async for group in client.queues.groups.list("mail", "b")] == ["b"]
    for job in await client.pull("mail", max_jobs=10):
        if job.group == "a":
            await client.fail(job, "Boom")
    found = [job async for job in client.jobs.list(group="c")]
    assert [(job.id, job.options.group) for job in found] == [(pushed[3].id, "c")]
    dead = [job.id async for job in client.dead.list("group:a")]
    assert dead == [pushed[0].id, pushed[1].id]
    assert (await client.jobs.delete(group="a")).count == 2
    assert (await client.queues.groups.update("mail", "a", GroupSettings())).ready == 0
    assert (await client.jobs.get(pushed[3].id)).state is JobState.ACTIVE


async def test_what_a_group_does_not_take_is_refused_by_name(client: AsyncClient) -> None:
    """Nothing of the push is stored."""
    with pytest.raises(InvalidArgument) as refused:
        await client.push("mail", b"x", group="a", options=JobOptions(priority=1))
    assert refused.value.field == "options.priority"
    await client.queues.update("mail", group=GroupSettings(max_waiting=2))
    results = await asyncio.gather(
        *[client.push("mail", b"x", group=name) for name in ("a", "a", "a", "b")],
        return_exceptions=True,
    )
    refusals = [one for one in results if isinstance(one, BaseException)]
    assert [type(one) for one in refusals] == [GroupFull]
    assert [group.ready async for group in client.queues.groups.list("mail")] == [2, 1]


async def test_ten_thousand_groups_cost_no_more_each_than_ten(server: RunningServer) -> None:
    """A queue whose READY jobs are all held is not looked through by any pull."""
    async with AsyncClient(server.address) as client:
        for at in range(0, 2_000, 1_000):
            jobs = [NewJob(b"x", group=f"g{number}") for number in range(at, at + 1_000)]
            await client.push_many("mail", jobs)
            await client.push_many("mail", jobs)
        pulled = await client.pull("mail", max_jobs=1_000)
        pulled += await client.pull("mail", max_jobs=1_000)
        assert len({job.group for job in pulled}) == 2_000
        assert await client.pull("mail") == []
        queue = server.runtime.core.slots.find_queue("mail")
        assert queue is not None
        assert [*queue.lanes()] == []
