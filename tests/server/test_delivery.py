"""Replies that cannot be written: their jobs are released at once, not after a lease."""

from __future__ import annotations

import asyncio
from logging import WARNING
from threading import Event
from typing import Any

import pytest
from grpc import aio

from jobline.v1 import job_service_pb2
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.engine.commands import Leased, Pull
from jobline_server.testing import RunningServer
from tests.server.conftest import connect, until
from tests.server.half_client import calls_unread, reset
from tests.server.world import make

# As long as a cancellation needs at most to the server's socket and its threads.
ON_ITS_WAY_SECONDS = 0.2


async def test_a_reply_that_could_not_be_written_gives_its_jobs_back(
    server: RunningServer, channel: aio.Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial A3: cancelled when the handler had its jobs, and before the loop could know."""
    stub: Any = JobServiceStub(channel)
    request = make(job_service_pb2.PullRequest, queues=[{"queue": "q"}], wait={"seconds": 20})
    original = server.runtime.pulls.pull
    calls: list[Any] = []

    async def cancelled_meanwhile(pull: Pull) -> Leased:
        leased = await original(pull)
        calls[0].cancel()
        # The loop stands still, so only the transport can see it come.
        Event().wait(ON_ITS_WAY_SECONDS)
        return leased

    monkeypatch.setattr(server.runtime.pulls, "pull", cancelled_meanwhile)
    calls.append(stub.Pull(request))
    await until(lambda: len(server.server.admission.pulls) == 1)
    pushed = await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"]))

    with pytest.raises(asyncio.CancelledError):
        await calls[0]

    monkeypatch.undo()
    (job,) = (await stub.Pull(request)).jobs
    assert job.id == pushed.first_id
    view = await server.runtime.jobs.get_job(job.id)
    assert (view.attempts, view.stalls, view.releases) == (0, 0, 0)


async def test_a_pull_whose_reply_is_not_wanted_is_given_back(
    server: RunningServer, channel: aio.Channel
) -> None:
    """Trial A3: a caller that cancels cannot know what was on the way to it."""
    stub: Any = JobServiceStub(channel)
    pull = {"queues": [{"queue": "q"}], "request_id": "r", "wait": {"seconds": 20}}
    await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"]))
    lost = await stub.Pull(make(job_service_pb2.PullRequest, **pull))
    release = make(job_service_pb2.ReleaseRequest, pull=pull)
    assert not (await stub.Release(release)).exceptions
    (job,) = (await stub.Pull(make(job_service_pb2.PullRequest, **pull))).jobs
    assert job.id == lost.jobs[0].id
    waits = stub.Pull(make(job_service_pb2.PullRequest, **{**pull, "worker": "w"}))
    await until(lambda: len(server.server.admission.pulls) == 1)
    await stub.Release(make(job_service_pb2.ReleaseRequest, pull={**pull, "worker": "w"}))
    assert not (await waits).jobs


async def test_a_job_too_large_for_a_client_is_not_sent_to_it(server: RunningServer) -> None:
    """Trial C6: by gRPC's default limits the call would fail, each time, until the job is dead."""
    async with aio.insecure_channel(server.address) as plain, connect(server.address) as channel:
        stub: Any = JobServiceStub(plain)
        payloads = [bytes(5 << 20), b"small"]
        pushed = await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=payloads))
        stream = stub.Stream()
        opening = {"queues": [{"queue": "q"}]}
        frame = make(job_service_pb2.StreamRequest, open=opening, window={"max_in_flight": 9})
        await stream.write(frame)
        jobs: list[Any] = []
        while not jobs:
            jobs += (await stream.read()).jobs
        assert [job.payload for job in jobs] == [b"small"]
        pull = {"queues": [{"queue": "q"}], "max_jobs": 9}
        assert not (await stub.Pull(make(job_service_pb2.PullRequest, **pull))).jobs
        large = {**pull, "max_message_bytes": 16 << 20}
        taken = await JobServiceStub(channel).Pull(make(job_service_pb2.PullRequest, **large))
        assert [job.id for job in taken.jobs] == [pushed.first_id]
        stream.cancel()


@pytest.mark.parametrize("method", ["Stream", "Pull"])
async def test_a_call_that_breaks_during_its_first_write_ends_without_a_word(
    server: RunningServer, channel: aio.Channel, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    """Trial D9: grpc.aio would answer it, with its headers a second time, and log a stack."""
    stub: Any = JobServiceStub(channel)
    await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"]))
    asked = {"queues": [{"queue": "q"}]}
    message: Any = make(job_service_pb2.PullRequest, **asked)
    if method == "Stream":
        message = make(job_service_pb2.StreamRequest, open=asked)
    meter = server.server.meters.of("jobline.v1.JobService", method)
    path = f"/jobline.v1.JobService/{method}"
    async with calls_unread(server.address, path, [message.SerializeToString()] * 2) as writer:
        await until(lambda: meter.started == 2)
        for _ in range(100):  # iterations of the loop, in which the first message is given to gRPC
            await asyncio.sleep(0)
        writer.write(reset(1) + reset(3))
        await writer.drain()
        await until(lambda: sum(meter.ended.values()) == 2)
    # The transport reports cancelled calls before it serves the next one.
    await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"]))

    assert not [record for record in caplog.records if record.levelno >= WARNING]
