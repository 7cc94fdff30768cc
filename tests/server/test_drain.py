"""Stopping: what is notified in which order, and that a polite stop loses nothing."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio

from jobline.v1 import job_admin_service_pb2, job_pb2, job_service_pb2
from jobline.v1.job_admin_service_pb2_grpc import JobAdminServiceStub
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server import app
from jobline_server.config import load_settings
from jobline_server.engine.values import JobState
from jobline_server.testing import ServerProcess, running_server
from jobline_server.testing.embedded import FOR_TESTS
from tests.server.calling import refusal_of
from tests.server.conftest import connect, until
from tests.server.streaming import OPEN, next_with, opened
from tests.server.world import make


async def test_a_worker_is_asked_to_go_and_may_finish(transport: str) -> None:
    """goaway, the ack of what it had, confirm, OK; then the server stops without waiting longer."""
    options: dict[str, Any] = {"transport": transport, "drain_seconds": 3_600}
    async with running_server(**options) as server, connect(server.address) as channel:
        stub = JobServiceStub(channel)
        stream = await opened(stub)
        await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"]))
        job = (await next_with(stream, "jobs")).jobs[0]

        stopping = asyncio.create_task(server.server.stop())
        assert (await next_with(stream, "goaway")).goaway.reason
        settle = {"seq": 1, "ack_ids": [job.id], "ack_deliveries": [job.delivery]}
        await stream.write(make(job_service_pb2.StreamRequest, settles=[settle]))
        assert (await next_with(stream, "confirms")).confirms[0].seq == 1
        await stream.done_writing()

        while await stream.read() is not aio.EOF:
            pass
        assert await stream.code() is grpc.StatusCode.OK
        await stopping


async def test_new_streams_are_refused_while_draining(transport: str) -> None:
    """UNAVAILABLE with DRAINING: connect elsewhere or later."""
    options: dict[str, Any] = {"transport": transport, "drain_seconds": 3_600}
    async with running_server(**options) as server, connect(server.address) as channel:
        stub = JobServiceStub(channel)
        stream = await opened(stub)
        stopping = asyncio.create_task(server.server.stop())
        await next_with(stream, "goaway")

        late = stub.Stream()
        await late.write(make(job_service_pb2.StreamRequest, **OPEN))
        with pytest.raises(aio.AioRpcError) as caught:
            await late.read()
        assert refusal_of(caught.value).reason == "DRAINING"

        server.server.hasten()
        await stopping


async def test_calls_that_wait_are_told_to_come_back(
    transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long polls, Wait and Watch end with DRAINING, at once: they use none of the calls' time."""
    monkeypatch.setattr(app, "CALLS_SECONDS", 3_600)
    async with running_server(transport=transport) as server, connect(server.address) as channel:
        stub = JobServiceStub(channel)
        queues = [{"queue": "q"}]
        poll = stub.Pull(make(job_service_pb2.PullRequest, queues=queues, wait={"seconds": 60}))
        watch = stub.Watch(job_service_pb2.WatchRequest())
        later = {"text": "x", "delay": {"seconds": 600}}
        pushed = await stub.Push(make(job_service_pb2.PushRequest, queue="later", jobs=[later]))
        wait = stub.Wait(job_service_pb2.WaitRequest(ids=pushed.ids))
        gates = server.server.admission
        await until(lambda: bool(len(gates.pulls) and len(gates.watchers) and len(gates.waiters)))

        await server.server.stop()

        for waiting in (poll, _after_events(watch), _after_events(wait)):
            with pytest.raises(aio.AioRpcError) as caught:
                await waiting
            assert refusal_of(caught.value).reason == "DRAINING"


async def _after_events(stream: Any) -> None:
    while await stream.read() is not aio.EOF:
        pass


async def test_what_was_answered_is_sent_before_the_connections_end(transport: str) -> None:
    """A stop that comes between a call's answer and its arrival takes no reply away."""
    async with running_server(transport=transport) as server, connect(server.address) as channel:
        jobs = JobServiceStub(channel)
        pushed = await jobs.Push(job_service_pb2.PushRequest(queue="q", payloads=[bytes(1 << 20)]))
        request = job_admin_service_pb2.GetJobRequest(id=pushed.first_id)
        meter = server.server.meters.of("jobline.v1.JobAdminService", "GetJob")
        stub: Any = JobAdminServiceStub(channel)
        calls = [asyncio.ensure_future(stub.GetJob(request)) for _ in range(20)]
        await until(lambda: sum(meter.ended.values()) == 20)

        await server.server.stop()

        assert [len(reply.job.payload) for reply in await asyncio.gather(*calls)] == [1 << 20] * 20


async def test_a_server_that_stopped_starts_with_what_it_had(
    transport: str, tmp_path: Path
) -> None:
    """Stopping twice is stopping once; nothing is lost by it (G21)."""
    data = tmp_path / "data"
    async with running_server(data, transport=transport) as server:
        async with connect(server.address) as channel:
            stub = JobServiceStub(channel)
            pushed = await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"] * 100))
        await server.server.stop()
        await server.server.stop()

    async with (
        running_server(data, transport=transport) as again,
        connect(again.address) as channel,
    ):
        request = job_admin_service_pb2.GetJobRequest(id=pushed.first_id + 99)
        reply = await JobAdminServiceStub(channel).GetJob(request)
    assert reply.job.state == job_pb2.JOB_STATE_READY
    assert reply.job.payload == b"x"


async def test_sigterm_stops_politely_and_a_second_one_hastens(
    transport: str, tmp_path: Path
) -> None:
    """A worker that stays delays the stop for the drain time, or until a second signal."""
    process = ServerProcess(tmp_path / "data", transport=transport, drain_seconds=600)
    async with process, connect(process.address) as channel:
        stub = JobServiceStub(channel)
        await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"]))
        stream = await opened(stub)

        process.signal(signal.SIGTERM)
        await next_with(stream, "goaway")
        process.signal(signal.SIGTERM)

        assert await process.wait() == 0
    assert '"stopped"' in process.log.read_text()


async def test_a_killed_server_comes_back_at_its_address(transport: str, tmp_path: Path) -> None:
    """What was acknowledged is there (G1)."""
    process = ServerProcess(tmp_path / "data", transport=transport)
    async with process, connect(process.address) as channel:
        stub = JobServiceStub(channel)
        pushed = await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"]))

        await process.restart()

        request = job_admin_service_pb2.GetJobRequest(id=pushed.first_id)
        reply = await JobAdminServiceStub(channel).GetJob(request, wait_for_ready=True)
        assert reply.job.id == pushed.first_id
        assert await process.terminate() == 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"max_payload_bytes": "1B"}, "max_payload_bytes"),
        ({"http": "127.0.0.1:1"}, "cannot listen"),
        ({"unix_socket": "/nowhere/at/all.sock"}, "no folder"),
    ],
)
async def test_a_server_that_cannot_start_says_why(
    tmp_path: Path, settings: dict[str, Any], said: str
) -> None:
    """Exit code 2, and one line that names the setting (G22)."""
    if settings.get("http") == "127.0.0.1:1":
        taken = ServerProcess(tmp_path / "first")
        await taken.start()
        settings = {"http": taken.http}
    process = ServerProcess(tmp_path / "data", **settings)

    with pytest.raises(RuntimeError, match=f"(?s)ended with 2.*{said}"):
        await process.start()
    if "taken" in locals():
        await taken.kill()


async def test_two_servers_never_have_one_directory(tmp_path: Path) -> None:
    """The second one does not start."""
    async with ServerProcess(tmp_path / "data"):
        second = ServerProcess(tmp_path / "data")
        with pytest.raises(RuntimeError, match="ended with 2"):
            await second.start()


async def test_a_step_of_the_stop_that_fails_keeps_no_other_from_being_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are closed, so that the next server can have them; and the failure is raised."""

    async def fail() -> None:
        raise OSError("the port cannot be closed")

    server = app.Server(load_settings({**FOR_TESTS, "data": tmp_path}))
    await server.start()
    async with connect(server.addresses[0]) as channel:
        push = job_service_pb2.PushRequest(queue="q", payloads=[b"x"])
        await JobServiceStub(channel).Push(push)
    monkeypatch.setattr(server, "_close_http", fail)
    with pytest.raises(OSError, match="the port cannot be closed"):
        await server.stop()
    async with running_server(tmp_path) as next_server:
        assert next_server.runtime.queues.get_queue("q").counts[JobState.READY] == 1
