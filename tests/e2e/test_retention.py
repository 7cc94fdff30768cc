"""How long ended jobs are kept, over a socket: what a job says itself."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jobline import (
    AsyncClient,
    JobNotFound,
    JobOptions,
    JobState,
    Retention,
)
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer, running_server

MINUTE, HOUR = 60_000, 3_600_000


async def a_completed_job(client: AsyncClient, **retention: Any) -> int:
    """Pushed, pulled and acked."""
    options = JobOptions(retention=Retention(**retention)) if retention else JobOptions()
    pushed = await client.push("mail", b"x", options=options)
    (leased,) = await client.pull("mail")
    await client.ack(leased)
    return pushed.id


async def retain(server: RunningServer, milliseconds: int = 0) -> None:
    """Lets time pass and retention run."""
    server.advance(milliseconds)
    background = server.server.background
    (beat,) = [beat for beat in background.tasks if beat.name == "retention"]
    await background.run_once(beat)
    assert background.records["retention"].work.failures == 0


async def kept(client: AsyncClient) -> dict[int, JobState]:
    """All jobs that are listed."""
    return {job.id: job.state async for job in client.jobs.list(queue="mail")}


async def test_ended_jobs_age_and_go(client: AsyncClient, server: RunningServer) -> None:
    """Two stages: STALE, then deleted; each is counted."""
    pushed = await client.push("mail", b"x")
    await client.jobs.cancel(pushed.id)
    await retain(server, HOUR + 1)
    job = await client.jobs.get(pushed.id)
    assert (job.state, job.stale_from) == (JobState.STALE, JobState.CANCELLED)
    assert (await client.wait_one(pushed.id)).state == JobState.CANCELLED
    await retain(server, HOUR + 1)
    with pytest.raises(JobNotFound):
        await client.jobs.get(pushed.id)
    assert (await client.queues.get("mail")).counts.stale == 0


async def test_a_jobs_own_age_is_exact(client: AsyncClient, server: RunningServer) -> None:
    """Whatever its queue says; others are not touched."""
    await client.queues.update("mail", retention=Retention(age=3_600))
    short = await a_completed_job(client, age=60)
    other = await a_completed_job(client)
    await retain(server, MINUTE - 1)
    assert await kept(client) == {short: JobState.COMPLETED, other: JobState.COMPLETED}
    await retain(server, 1)
    assert await kept(client) == {short: JobState.STALE, other: JobState.COMPLETED}
    assert int((await client.jobs.get(short)).stale_from) == JobState.COMPLETED
    await retain(server, HOUR + 1)
    with pytest.raises(JobNotFound):
        await client.jobs.get(short)


async def test_a_jobs_own_count_keeps_so_many_after_it(
    client: AsyncClient, server: RunningServer
) -> None:
    """It goes with the job that is one too many, without being STALE."""
    first, second, third = [await a_completed_job(client, count=2) for _ in range(3)]
    await retain(server)
    assert await kept(client) == {second: JobState.COMPLETED, third: JobState.COMPLETED}
    with pytest.raises(JobNotFound):
        await client.jobs.get(first)
    counts = (await client.queues.get("mail")).counts
    assert (counts.completed, counts.stale) == (2, 0)


async def test_what_a_job_says_itself_is_shown(client: AsyncClient) -> None:
    """With the job, in lists, and where it is explained."""
    job_id = await a_completed_job(client, age=90, count=5)
    shown = (await client.jobs.get(job_id)).options.retention
    (listed,) = [job async for job in client.jobs.list(queue="mail")]
    assert shown == Retention(age=timedelta(seconds=90), count=5)
    assert listed.options.retention == shown
    (obstacle,) = (await client.jobs.explain(job_id)).obstacles
    assert obstacle.message == (
        "it is COMPLETED; by its own options it is kept for 90 s and beside 5 that ended after it"
    )


async def test_what_a_job_says_itself_outlives_the_process(tmp_path: Path) -> None:
    """Also where it ended in an earlier life."""
    clock = ManualClock()
    async with running_server(tmp_path, clock=clock) as first, AsyncClient(first.address) as client:
        aged = await a_completed_job(client, age=60)
        counted = await a_completed_job(client, count=1)
    async with running_server(tmp_path, clock=clock) as then, AsyncClient(then.address) as client:
        last = await a_completed_job(client)
        await retain(then, MINUTE)
        assert await kept(client) == {aged: JobState.STALE, last: JobState.COMPLETED}
        with pytest.raises(JobNotFound):
            await client.jobs.get(counted)


async def test_a_queue_says_how_long_jobs_are_stale(tmp_path: Path) -> None:
    """Over a restart too; explain says when they go."""
    clock = ManualClock()
    async with (
        running_server(tmp_path, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        await client.queues.update("mail", retention=Retention(age=0, delete_after="10m"))
        job_id = await a_completed_job(client)
        await retain(server, 1)
        explained = await client.jobs.explain(job_id)
        assert explained.state == JobState.STALE
        until = explained.obstacles[0].until
        assert until is not None
        assert round(until.timestamp() * 1_000) == clock.now().wall_ms + 10 * MINUTE
    async with (
        running_server(tmp_path, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        assert (await client.queues.get("mail")).settings.retention == Retention(
            age=timedelta(0), delete_after=timedelta(minutes=10)
        )
        await retain(server, 10 * MINUTE)
        assert await kept(client) == {job_id: JobState.STALE}
        await retain(server, 1)
        assert await kept(client) == {}
