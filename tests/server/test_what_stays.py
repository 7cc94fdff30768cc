"""Memory after a call: nothing of a refused one stays, and unread replies are counted."""

from __future__ import annotations

import asyncio
import gc
from threading import Event
from typing import Any

import pytest
from google.protobuf.message import Message
from grpc import aio

from jobline.v1 import job_admin_service_pb2, job_service_pb2, queue_pb2, queue_service_pb2
from jobline.v1.admin_service_pb2_grpc import AdminServiceStub
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline.v1.queue_service_pb2_grpc import QueueServiceStub
from jobline_server.engine import limits
from jobline_server.engine.commands import Push, Refused
from jobline_server.engine.values import JobState
from jobline_server.rpc.admission import Admission, CallLimits
from jobline_server.rpc.native_calls import NativeCall
from jobline_server.runtime.calls.worker_stream import WorkerStream
from jobline_server.testing import RunningServer, running_server
from tests.server.calling import BytesChannel, call, encoded, refusal_of
from tests.server.conftest import connect, until
from tests.server.half_client import calls_unread, request, reset
from tests.server.world import make

# What a refused call is made of: its message, its command, its errors.
PARTS = (Message, Push, Refused, aio.AbortError, NativeCall)
# grpc.aio itself still holds the state of the last call it took.
LAST = 4
# As long as frames need at most to the server's socket and its threads.
ON_THEIR_WAY_SECONDS = 0.2
REFUSED: dict[str, dict[str, Any]] = {
    "a system's queue": {"queue": "_bad", "payloads": [b"x" * 5_000]},
    "a full queue, alone": {"queue": "full", "payloads": [b"x" * 5_000]},
    "a full queue, together": {"queue": "full", "payloads": [b"x"]},
    "a key twice": {"queue": "q", "jobs": [{"job_key": "a", "text": t} for t in "ab"]},
    "a nested field": {"queue": "q", "jobs": [{"options": {"name": "a\n"}}]},
}


def parts() -> int:
    """How many such objects there are."""
    return sum(isinstance(found, PARTS) for found in gc.get_objects())


@pytest.fixture
async def full(channel: aio.Channel) -> aio.Channel:
    """A channel to a server whose queue `full` takes no more."""
    await JobServiceStub(channel).Push(job_service_pb2.PushRequest(queue="full", payloads=[b"x"]))
    settings = queue_pb2.QueueSettings(max_waiting=1)
    await QueueServiceStub(channel).UpdateQueue(
        queue_service_pb2.UpdateQueueRequest(queue="full", settings=settings)
    )
    return channel


@pytest.mark.parametrize("why", REFUSED)
async def test_nothing_of_a_refused_call_outlives_it(full: BytesChannel, why: str) -> None:
    """Trial E1: message, command and errors are gone with the call, without the garbage collector:
    a queue that stays full for an hour costs no memory.
    """
    push = full.unary_unary("/jobline.v1.JobService/Push")
    body = make(job_service_pb2.PushRequest, **REFUSED[why]).SerializeToString()

    async def refused() -> None:
        answers = await asyncio.gather(*(push(body) for _ in range(20)), return_exceptions=True)
        assert all(isinstance(answer, aio.AioRpcError) for answer in answers)

    await refused()
    gc.collect()
    gc.disable()
    try:
        before = parts()
        for _ in range(5):
            await refused()
        await until(lambda: parts() <= before + LAST)
    finally:
        gc.enable()


async def test_nothing_of_a_call_that_never_began_outlives_it(server: RunningServer) -> None:
    """Calls that were reset before the loop came to them are gone."""
    message = job_service_pb2.PushRequest(queue="q", payloads=[b"x"]).SerializeToString()
    before = parts()
    numbers = range(1, 200, 2)
    async with calls_unread(server.address, "", []) as writer:
        for number in numbers:
            writer.write(request(number, "/jobline.v1.JobService/Push", message))
        # The loop stands still, so only the transport can see them come, and go.
        Event().wait(ON_THEIR_WAY_SECONDS)
        for number in numbers:
            writer.write(reset(number))
        Event().wait(ON_THEIR_WAY_SECONDS)

    await until(lambda: not unread(server.server.admission))
    await until(lambda: parts() <= before + LAST)


async def test_nothing_of_a_refused_stream_outlives_it(channel: aio.Channel) -> None:
    """Trial E1: nor of frames."""
    opening = {"open": {"queues": [{"queue": "q"}]}}
    wrong = {"settles": [{"ackIds": ["1"]}]}
    frames = [encoded("JobService/Stream", frame) for frame in (opening, wrong)]

    async def refused() -> None:
        refusal = await call(channel, "JobService/Stream", frames)
        assert refusal is not None

    await refused()
    gc.collect()
    gc.disable()
    try:
        before = parts()
        for _ in range(20):
            await refused()
        await until(lambda: parts() <= before + LAST)
    finally:
        gc.enable()


@pytest.mark.parametrize("says_goodbye", [True, False])
async def test_nothing_of_a_stream_that_ended_outlives_it(
    channel: aio.Channel, says_goodbye: bool
) -> None:
    """Trial E1: nor of what it said of itself, or was to be told, however it ended."""
    opening = make(job_service_pb2.StreamRequest, open={"queues": [{"queue": "q"}]})

    def streams() -> int:
        return sum(isinstance(found, WorkerStream) for found in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            stream: Any = JobServiceStub(channel).Stream()
            await stream.write(opening)
            await stream.read()
            if says_goodbye:
                await stream.done_writing()
                await stream.code()
            else:
                stream.cancel()
        await until(lambda: not streams())
    finally:
        gc.enable()


@pytest.mark.parametrize("kind", ["streams", "waiters"])
async def test_what_open_calls_keep_is_bounded_together(
    server: RunningServer, channel: aio.Channel, kind: str
) -> None:
    """Trial E6: names of handlers, and the ids of those who wait."""
    gate = getattr(server.server.admission, kind)
    gate.max_held = 1_000
    handlers = [{"queue": "q", "name": str(number)} for number in range(2)]
    opening = {"queues": [{"queue": "q"}], "handlers": handlers}
    frame = make(job_service_pb2.StreamRequest, open=opening)
    wait = job_service_pb2.WaitRequest(ids=range(1, 1_002))
    stub: Any = JobServiceStub(channel)
    call = stub.Wait(wait) if kind == "waiters" else stub.Stream(iter([frame]))

    with pytest.raises(aio.AioRpcError) as caught:
        await call.read()

    assert refusal_of(caught.value).reason == "TOO_MANY_CALLS"
    await until(lambda: not gate.held)


async def test_schemas_of_all_open_streams_are_bounded_and_kept_once(
    server: RunningServer, channel: aio.Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve workers with 240 handlers of 60 KB each would take 170 MB."""
    monkeypatch.setattr(limits, "SCHEMAS_BYTES_MAX", 100_000)
    stub: Any = JobServiceStub(channel)
    schemas = server.server.runtime.streams.handlers.schemas

    async def opened(schema: str) -> Any:
        handlers = [
            {"queue": "q", "name": str(number), "payload_schema": schema, "result_schema": schema}
            for number in range(20)
        ]
        stream = stub.Stream()
        opening = {"queues": [{"queue": "q"}], "handlers": handlers}
        await stream.write(make(job_service_pb2.StreamRequest, open=opening))
        await stream.read()
        return stream

    streams = [await opened("x" * 60_000) for _ in range(5)]
    assert 60_000 <= schemas.held_bytes < 61_000
    assert server.server.admission.streams.held < 5 * 60_000
    streams.append(await opened("y" * 60_000))
    assert len(schemas) == 1
    for stream in streams:
        stream.cancel()
    await until(lambda: not len(schemas))
    (await opened("y" * 60_000)).cancel()


async def get_job_of(server: RunningServer, payload: bytes) -> bytes:
    """A job with this payload; the message that asks for it."""
    async with connect(server.address) as channel:
        pushed = await JobServiceStub(channel).Push(
            job_service_pb2.PushRequest(queue="q", payloads=[payload])
        )
    return job_admin_service_pb2.GetJobRequest(id=pushed.first_id).SerializeToString()


def unread(admission: Admission) -> int:
    """Calls whose replies are not read, counted now."""
    for recount in admission.recounts:
        recount()
    return admission.calls + admission.unread_calls


async def test_replies_that_nobody_reads_are_counted_and_bounded(transport: str) -> None:
    """Trial E6: over the bound, calls are refused until a caller reads or disconnects."""
    payload = bytes(1 << 20)
    async with running_server(transport=transport) as server:
        admission = server.server.admission
        admission.limits = CallLimits(reply_bytes=8 << 20)
        message = await get_job_of(server, payload)
        meter = server.server.meters.of("jobline.v1.JobAdminService", "GetJob")

        path = "/jobline.v1.JobAdminService/GetJob"
        async with calls_unread(server.address, path, [message] * 100):
            await until(lambda: sum(meter.ended.values()) == 100)
            assert meter.ended["RESOURCE_EXHAUSTED"] >= 90
            assert len(payload) <= admission.waiting_bytes <= admission.limits.reply_bytes

        await until(lambda: not unread(admission) and not admission.waiting_bytes)
        async with connect(server.address) as channel:
            untyped: BytesChannel = channel
            await untyped.unary_unary(path)(message)


async def test_pulls_that_nobody_reads_lease_no_more_than_fits(transport: str) -> None:
    """Trial E6: what is over the bound is refused before anything is leased."""
    async with running_server(transport=transport) as server, connect(server.address) as channel:
        admission = server.server.admission
        admission.limits = CallLimits(reply_bytes=8 << 20)
        pushed = {"queue": "q", "payloads": [bytes(100_000)] * 100}
        for _ in range(5):
            await JobServiceStub(channel).Push(make(job_service_pb2.PushRequest, **pushed))
        meter = server.server.meters.of("jobline.v1.JobService", "Pull")
        pull = make(job_service_pb2.PullRequest, queues=[{"queue": "q"}], max_jobs=10)

        path = "/jobline.v1.JobService/Pull"
        async with calls_unread(server.address, path, [pull.SerializeToString()] * 40):
            await until(lambda: sum(meter.ended.values()) == 40)
            assert 0 < admission.waiting_bytes <= admission.limits.reply_bytes
            assert meter.ended["RESOURCE_EXHAUSTED"] >= 30
            assert (
                server.runtime.queues.get_queue("q").counts[JobState.ACTIVE]
                == 10 * meter.ended["OK"]
            )

        await until(lambda: not unread(admission))
        if transport == "grpcio":  # which reports that they were not written
            await until(lambda: server.runtime.queues.get_queue("q").counts[JobState.READY] == 500)


async def test_calls_whose_replies_nobody_reads_stay_open(transport: str) -> None:
    """Trial E6: small replies hold their calls' places."""
    options: dict[str, Any] = {"transport": transport, "max_calls": 50}
    async with running_server(**options) as server:
        admission = server.server.admission
        path = "/jobline.v1.AdminService/GetStats"
        async with (
            calls_unread(server.address, path, [b""] * 60),
            connect(server.address) as channel,
        ):
            meter = server.server.meters.of("jobline.v1.AdminService", "GetStats")
            await until(lambda: sum(meter.ended.values()) == 60)
            assert admission.calls + admission.unread_calls >= 50

            with pytest.raises(aio.AioRpcError) as caught:
                await AdminServiceStub(channel).GetStats(b"")  # type: ignore[arg-type]  # bytes

            assert refusal_of(caught.value).reason == "TOO_MANY_CALLS"
        await until(lambda: not unread(admission))


async def test_replies_that_were_read_hold_no_place(transport: str) -> None:
    """Trial E6: callers who read are not refused, however many were answered, though the native
    transport does not say when it has written a reply.
    """
    options: dict[str, Any] = {"transport": transport, "max_calls": 20}
    async with running_server(**options) as server, connect(server.address) as channel:
        stub: Any = AdminServiceStub(channel)
        for _ in range(50):
            await asyncio.gather(*(stub.GetStats(b"") for _ in range(5)))
