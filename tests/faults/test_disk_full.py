"""A disk that is full: a small tmpfs under a real server."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from grpc import aio

from jobline import AsyncClient, DiskFull, SettleOutcome
from jobline.v1 import job_admin_service_pb2, job_pb2, queue_service_pb2
from jobline.v1.job_admin_service_pb2_grpc import JobAdminServiceStub
from jobline.v1.queue_service_pb2_grpc import QueueServiceStub
from jobline_server.serving import EXIT_CANNOT_START
from jobline_server.testing import RunningServer, running_server
from tests.small_disk import fill, mounted

pytestmark = [pytest.mark.fault, pytest.mark.root]

DISK_MIB = 64
MIB = 1 << 20
PAYLOAD = b"x" * 200_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, soon full."""
    with mounted(tmp_path / "disk", DISK_MIB) as disk:
        yield disk


@asynccontextmanager
async def serving(disk: Path) -> AsyncIterator[tuple[RunningServer, AsyncClient]]:
    """A server with the least ballast it may have, and a client."""
    async with (
        running_server(
            disk / "data", ballast_bytes=10 * MIB, max_payload_bytes=MIB, low_space_bytes=4 * MIB
        ) as server,
        AsyncClient(server.address) as client,
    ):
        yield server, client


async def push_until_full(client: AsyncClient) -> int:
    """Pushes until a push is refused; returns how many were acknowledged."""
    for acknowledged in range(DISK_MIB * 10):
        try:
            await client.push_payloads("mail", [PAYLOAD])
        except DiskFull:
            return acknowledged
    raise AssertionError("the disk did not become full")


async def end_until_full(server: RunningServer, client: AsyncClient) -> None:
    """The queue's own completed jobs fill the disk, journals and all."""
    try:
        for _ in range(DISK_MIB):
            await client.push_payloads("mail", [PAYLOAD] * 5)
            jobs = await client.pull("mail", max_jobs=5, wait=5)
            assert set(await client.ack(*jobs)) == {SettleOutcome.DONE}
            await server.runtime.ended.write()
            if server.runtime.core.commits.commits % 4 == 0:
                await server.runtime.checkpoints.take_due(everything=True)
    except DiskFull:
        return
    raise AssertionError("the disk did not become full")


async def run_beat(server: RunningServer, name: str) -> None:
    """One run of a part of the background."""
    background = server.server.background
    (task,) = [task for task in background.tasks if task.name == name]
    await background.run_once(task)


async def until_accepting(server: RunningServer) -> None:
    """Waits until pushes are taken again."""
    for _ in range(50):
        await run_beat(server, "space")
        if not server.runtime.core.commits.disk_full:
            return
    raise AssertionError("the disk never had room again")


async def test_pushes_are_refused_acks_go_on_and_it_recovers_by_itself(small_disk: Path) -> None:
    """With a definite code; nothing that was acknowledged is lost by it."""
    async with serving(small_disk) as (server, client):
        filler = small_disk / "filler"
        filler.write_bytes(b"\0" * (16 * MIB))
        acknowledged = await push_until_full(client)
        with pytest.raises(DiskFull) as refused:
            await client.push_payloads("mail", [b"x"])
        assert refused.value.definite
        assert acknowledged > 5
        first, second = await client.pull("mail", max_jobs=2, wait=5)
        assert await client.ack(first, second) == [SettleOutcome.DONE] * 2
        filler.unlink()
        await until_accepting(server)
        await client.push_payloads("mail", [b"after"])
        counts = (await client.queues.get("mail")).counts
        assert counts.ready + counts.completed >= acknowledged + 1
        assert counts.completed == 2


async def test_a_full_disk_is_said_once_and_readiness_says_it(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Trial B6: one line when it begins and one when it ends, and `/readyz` in between."""
    async with serving(small_disk) as (server, client), httpx.AsyncClient() as http:
        filler = fill(small_disk)
        await push_until_full(client)
        for _ in range(3):
            await run_beat(server, "space")
            with pytest.raises(DiskFull):
                await client.push_payloads("mail", [b"x"])
        ready = await http.get(f"http://{server.http}/readyz")
        assert (ready.status_code, "refuses pushes" in ready.text) == (200, True)
        filler.unlink()
        await until_accepting(server)
        assert (await http.get(f"http://{server.http}/readyz")).text == "ready\n"
    said = [line.getMessage() for line in caplog.records]
    assert sum("the disk is full" in line for line in said) == 1
    assert sum("the disk has room again" in line for line in said) == 1


async def test_deletes_empty_a_disk_that_ended_jobs_have_filled(small_disk: Path) -> None:
    """Trial B6: room is kept for them, and what they free goes back to the file system."""
    async with serving(small_disk) as (server, client):
        await end_until_full(server, client)
        fill(small_disk)
        assert await delete_completed(server) > 10
        await server.runtime.ended.write()
        await until_accepting(server)
        await client.push_payloads("mail", [PAYLOAD])


async def test_retention_empties_a_disk_that_ended_jobs_have_filled(small_disk: Path) -> None:
    """Trial B6: keeping fewer is enough; nothing has to be deleted by hand."""
    async with serving(small_disk) as (server, client):
        await end_until_full(server, client)
        fill(small_disk)
        fewer = queue_service_pb2.UpdateQueueRequest(queue="mail")
        fewer.settings.retention.count = 5
        fewer.update_mask.paths.append("retention")
        async with aio.insecure_channel(server.address) as channel:
            await QueueServiceStub(channel).UpdateQueue(fewer, timeout=30)
        for _ in range(20):
            await run_beat(server, "retention")
        await until_accepting(server)
        await client.push_payloads("mail", [PAYLOAD])
        # Those that waited for room are in the file now.
        await run_beat(server, "retention")
        assert (await client.queues.get("mail")).counts.completed == 5


async def delete_completed(server: RunningServer) -> int:
    """Deletes all that has completed, by a filter; returns how many that were."""
    completed = job_admin_service_pb2.DeleteJobsRequest()
    completed.jobs.filter.queue = "mail"
    completed.jobs.filter.states.append(job_pb2.JOB_STATE_COMPLETED)
    async with aio.insecure_channel(server.address) as channel:
        return (await JobAdminServiceStub(channel).DeleteJobs(completed, timeout=30)).count


@pytest.mark.parametrize("others", [False, True])
async def test_what_ended_on_a_full_disk_outlives_a_start_and_is_deleted(
    small_disk: Path, others: bool
) -> None:
    """A disk that live jobs have filled, which end then: there is no room to keep them, and a
    server that could not start there could not be told to delete them."""
    async with serving(small_disk) as (server, client):
        acknowledged = await push_until_full(client)
        if others:
            fill(small_disk)
        for _ in range(acknowledged):
            (job,) = await client.pull("mail", max_jobs=1, wait=5)
            assert await client.ack(job) == [SettleOutcome.DONE]
        assert server.runtime.core.commits.disk_full
    async with serving(small_disk) as (server, client):
        assert server.runtime.core.commits.disk_full
        assert (await client.queues.get("mail")).counts.completed == acknowledged
        assert await delete_completed(server) == acknowledged
        await server.runtime.checkpoints.take_due(everything=True)
        await until_accepting(server)
        await client.push_payloads("mail", [PAYLOAD])
        counts = (await client.queues.get("mail")).counts
        assert (counts.ready, counts.completed) == (1, 0)


async def test_acks_go_on_when_others_fill_the_disk_to_the_last_byte(small_disk: Path) -> None:
    """Trial B6: with the least ballast there may be."""
    async with serving(small_disk) as (server, client):
        await client.push_payloads("mail", [b"x"] * 500)
        fill(small_disk)
        await push_until_full(client)
        for _ in range(100):
            jobs = await client.pull("mail", max_jobs=5, wait=5)
            assert set(await client.ack(*jobs)) == {SettleOutcome.DONE}
        assert server.runtime.core.commits.disk_full


async def started(data: Path) -> None:
    """A start and a stop."""
    async with running_server(data):
        pass


@pytest.mark.parametrize("is_new", [True, False])
def test_a_start_on_a_full_disk_says_what_to_free(small_disk: Path, is_new: bool) -> None:
    """Trial B6, Trial E9: "cannot start", one line, code 2; with room it starts."""
    if not is_new:
        asyncio.run(started(small_disk / "data"))
    filler = fill(small_disk)
    command = [sys.executable, "-m", "jobline_server", f"--data={small_disk / 'data'}"]
    ended = subprocess.run(
        [*command, "--listen=127.0.0.1:0", "--http="],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == EXIT_CANNOT_START
    (line,) = ended.stderr.splitlines()
    assert json.loads(line)["event"] == "cannot start"
    assert "is full: make room on it, 16 MiB at least" in json.loads(line)["why"]
    filler.unlink()
    asyncio.run(started(small_disk / "data"))
