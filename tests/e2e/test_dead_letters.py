"""Dead letters over a socket and a restart: put back by themselves, and shown when."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from jobline import AsyncClient, DeadLetters, JobState
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer, running_server

HOUR = 3_600_000


async def retry_due(server: RunningServer, milliseconds: int) -> None:
    """Lets time pass and the task run."""
    server.advance(milliseconds)
    background = server.server.background
    (task,) = [task for task in background.tasks if task.name == "dead_letters"]
    await background.run_once(task)
    assert background.records["dead_letters"].work.failures == 0


async def die(client: AsyncClient) -> int:
    """Pulls the next job and fails it for good."""
    (leased,) = await client.pull("mail")
    await client.fail(leased, "it broke", then="dead")
    return leased.id


async def test_dead_job_is_put_back_after_a_restart_and_waits_longer_each_time(
    tmp_path: Path,
) -> None:
    """Predecessors: retries of dead letters were lost at a restart."""
    clock = ManualClock()
    async with running_server(tmp_path, clock=clock) as server, AsyncClient(server.address) as one:
        await one.queues.update("mail", dead_letters=DeadLetters(auto_retry=True))
        await one.push("mail", b"x")
        job_id = await die(one)
        job = await one.jobs.get(job_id)
        assert job.retry_at is not None
        assert job.ended_at is not None
        assert job.retry_at - job.ended_at == timedelta(hours=1)
    async with running_server(tmp_path, clock=clock) as server, AsyncClient(server.address) as one:
        await retry_due(server, HOUR - 1)
        assert (await one.jobs.get(job_id)).state is JobState.DEAD
        await retry_due(server, 1)
        assert (await one.jobs.get(job_id)).state is JobState.READY
        await die(one)
        job = await one.jobs.get(job_id)
        assert job.retry_at is not None
        assert job.ended_at is not None
        assert (job.auto_retries, job.retry_at - job.ended_at) == (1, timedelta(hours=2))
        assert [dead.retry_at async for dead in one.dead.list()] == [job.retry_at]
