"""Jobs with `delivery` ONCE, by the client: whatever ends in the middle, none runs twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from jobline import (
    AsyncClient,
    DeliveryMode,
    EndReason,
    JobOptions,
    JobState,
    QueueSettings,
    Worker,
)
from jobline.v1 import job_service_pb2
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer, ServerProcess, running_server

JOBS = 300
KILLS = 4


async def test_g7_a_lost_lease_of_a_once_job_is_a_dead_letter(
    client: AsyncClient, server: RunningServer
) -> None:
    """With the reason; another job of the queue is handed out again."""
    once = await client.push("mail", b"x", delivery="once")
    again = await client.push("mail", b"x")
    taken = await client.pull("mail", max_jobs=10)
    assert {job.id: job.options.delivery for job in taken} == {
        once.id: DeliveryMode.ONCE,
        again.id: None,
    }
    server.advance(35_000)
    assert [job.id for job in await client.pull("mail", max_jobs=10, wait=5)] == [again.id]
    dead = await client.jobs.get(once.id)
    assert (dead.state, dead.reason) == (JobState.DEAD, EndReason.INTERRUPTED)


async def test_a_queue_says_once_and_a_worker_hears_of_it(client: AsyncClient) -> None:
    """It must know what it may not give back."""
    await client.queues.update("mail", QueueSettings(delivery="once"))
    await client.push_payloads("mail", [b"x"] * 3)
    taken = await client.pull("mail", max_jobs=10)
    assert {job.options.delivery for job in taken} == {DeliveryMode.ONCE}
    assert (await client.queues.get("mail")).settings.delivery is DeliveryMode.ONCE


async def test_g7_a_restart_leaves_it_to_its_worker(tmp_path: Path) -> None:
    """Who has it may still ack it; nobody else gets it, and without an ack it is dead."""
    clock = ManualClock()
    async with (
        running_server(tmp_path, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        await client.push_payloads("mail", [b"x"] * 2, options=JobOptions(delivery="once"))
        first, second = await client.pull("mail", max_jobs=2)
    async with (
        running_server(tmp_path, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        assert await client.pull("mail", max_jobs=2) == []
        await client.ack(first)
        server.advance(35_000)
        assert (await client.wait_one(first.id)).state is JobState.COMPLETED
        end = await client.wait_one(second.id, timeout=5)
        assert (end.state, end.reason) == (JobState.DEAD, EndReason.INTERRUPTED)


async def test_g7_a_pull_that_is_asked_again_returns_the_same_leases(client: AsyncClient) -> None:
    """Its reply may have been lost, and no other pull gets the jobs."""
    await client.push_payloads("mail", [b"x"] * 2, delivery="once")
    stub: Any = JobServiceStub(client.channel)
    queues = [job_service_pb2.QueueWeight(queue="mail")]
    request = job_service_pb2.PullRequest(queues=queues, max_jobs=2, request_id="r")
    first = (await stub.Pull(request)).jobs
    assert await client.pull("mail", max_jobs=2) == []
    again = (await stub.Pull(request)).jobs
    assert {(job.id, job.delivery) for job in again} == {(job.id, job.delivery) for job in first}
    assert [job.options.delivery for job in again] == [DeliveryMode.ONCE] * 2


@pytest.mark.timeout(120)
async def test_g7_no_handler_of_a_once_job_runs_twice_though_the_server_is_killed(
    tmp_path: Path,
) -> None:
    """Killed at random while workers work; in the end each job is done, or dead because its lease
    was lost.
    """
    runs: Counter[int] = Counter()
    random = Random(7)
    async with ServerProcess(tmp_path / "data") as server:
        workers = [Worker(server.address, concurrency=8) for _ in range(2)]
        for worker in workers:

            @worker.handler("mail")
            async def work(payload: bytes, context) -> None:
                runs[context.job.id] += 1
                await asyncio.sleep(random.random() * 0.02)

        running = [asyncio.create_task(worker.serve()) for worker in workers]
        async with AsyncClient(server.address) as client:
            how = JobOptions(delivery="once", lease=1)
            lot = await client.push_payloads("mail", [b"x"] * JOBS, options=how)
            for _ in range(KILLS):
                await asyncio.sleep(0.1 + random.random() * 0.3)
                await server.restart()
            ends = [end async for end in client.wait(*lot.ids, timeout=60)]
            states = Counter(end.state for end in ends)
            for worker in workers:
                worker.stop()
            await asyncio.gather(*running)
    assert set(runs.values()) == {1}, runs.most_common(3)
    assert states[JobState.COMPLETED] + states[JobState.DEAD] == JOBS
    assert {end.reason for end in ends if end.state is JobState.DEAD} <= {EndReason.INTERRUPTED}
    assert states[JobState.COMPLETED] > JOBS // 2
