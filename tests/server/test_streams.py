"""The shell of a stream: large deliveries, silence, goodbyes and broken connections."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from grpc import aio

from jobline.v1 import job_service_pb2
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.engine.values import JobState
from jobline_server.rpc import job_stream
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import RunningServer, running_server
from tests.server.calling import refusal_of
from tests.server.conftest import connect, until
from tests.server.world import make

# The default of clients.
DEFAULT_MESSAGE_BYTES = 4 << 20


def frame(**parts: Any) -> Any:
    """A frame from a worker."""
    return make(job_service_pb2.StreamRequest, **parts)


async def opened(stub: Any, *, session: str = "") -> Any:
    """An open stream with room, and its session."""
    stream = stub.Stream()
    opening = {"queues": [{"queue": "q"}], "session": session}
    await stream.write(frame(open=opening, window={"max_in_flight": 1_000}))
    return stream, (await stream.read()).opened


async def only(server: RunningServer) -> Any:
    """The one worker that is connected."""
    workers, _ = await server.runtime.statistics.list_workers(page_size=10, page_token="", queue="")
    assert len(workers) == 1
    return workers[0]


@pytest.mark.parametrize("runs", [True, False], ids=["runs", "rows"])
async def test_a_large_delivery_comes_in_messages_that_clients_take(
    server: RunningServer, channel: aio.Channel, runs: bool
) -> None:
    """Nothing is lost or doubled, and order is kept."""
    stub = JobServiceStub(channel)
    payloads = [bytes([number]) * 300_000 for number in range(50)]
    await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=payloads))
    stream = stub.Stream()
    opening = {"queues": [{"queue": "q"}], "accepts_runs": runs}
    await stream.write(frame(open=opening, window={"max_in_flight": 1_000}))

    found: list[bytes] = []
    while len(found) < len(payloads):
        message: Any = await stream.read()
        assert message.ByteSize() < DEFAULT_MESSAGE_BYTES
        found += [payload for run in message.runs for payload in run.payloads]
        found += [job.payload for job in message.jobs]

    assert found == payloads
    stream.cancel()


async def test_a_stream_whose_first_frame_does_not_come_ends(
    channel: aio.Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would hold a place for ever."""
    monkeypatch.setattr(job_stream, "OPEN_SECONDS", 0.05)
    stream = JobServiceStub(channel).Stream()

    with pytest.raises(aio.AioRpcError) as caught:
        await stream.read()
    assert refusal_of(caught.value).reason == "PROTOCOL_MISTAKE"


async def test_a_goodbye_gives_the_jobs_back_at_once(
    server: RunningServer, channel: aio.Channel
) -> None:
    """After a half-close with leased jobs, another worker gets them at once."""
    stub = JobServiceStub(channel)
    stream, _ = await opened(stub)
    await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"]))
    await stream.read()

    await stream.done_writing()
    while await stream.read() is not aio.EOF:
        pass

    assert await stream.code() is grpc.StatusCode.OK
    pull = make(job_service_pb2.PullRequest, queues=[{"queue": "q"}], wait={"seconds": 5})
    assert len((await stub.Pull(pull)).jobs) == 1


async def test_a_broken_connection_keeps_the_jobs_for_the_session(
    server: RunningServer, channel: aio.Channel
) -> None:
    """Cancelled, it reads the end of its messages first: that must not be taken for a goodbye."""
    stub = JobServiceStub(channel)
    stream, first = await opened(stub)
    await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"]))
    job = (await stream.read()).jobs[0]

    stream.cancel()
    await until(lambda: len(server.server.admission.streams) == 0)
    again, second = await opened(stub, session=first.session)

    assert second.resumed
    assert list(second.held_ids) == [job.id]
    settle = {"seq": 1, "ack_ids": [job.id], "ack_deliveries": list(second.held_deliveries)}
    await again.write(frame(settles=[settle]))
    confirm = (await again.read()).confirms[0]
    assert not confirm.exceptions
    again.cancel()


async def test_the_older_of_two_streams_of_a_session_is_told_why_it_ends(
    server: RunningServer, channel: aio.Channel
) -> None:
    """Trial A5: one worker has the leases at any time."""
    stub = JobServiceStub(channel)
    older, first = await opened(stub)
    await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"]))
    job = (await older.read()).jobs[0]

    newer, second = await opened(stub, session=first.session)

    assert (second.session, list(second.held_ids)) == (first.session, [job.id])
    with pytest.raises(aio.AioRpcError) as caught:
        await read_to_the_end(older)
    assert refusal_of(caught.value).reason == "SESSION_TAKEN"
    newer.cancel()


async def test_what_a_broken_stream_did_not_take_goes_on_at_once(
    server: RunningServer, channel: aio.Channel
) -> None:
    """Trial A3: its worker read nothing, so all but the first messages never left the server."""
    stub = JobServiceStub(channel)
    await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[bytes(1_000_000)] * 14))
    stream = stub.Stream()
    opening = {"queues": [{"queue": "q"}], "accepts_runs": True}
    await stream.write(frame(open=opening, window={"max_in_flight": 1_000}))
    slots = server.runtime.core.slots
    queue = next(found for slot in slots for found in slot.shard.queues.values())
    await until(lambda: queue.counts[JobState.ACTIVE] == 14)

    stream.cancel()

    await until(lambda: len(server.server.admission.streams) == 0)
    assert queue.counts[JobState.READY] >= 7
    pull = make(job_service_pb2.PullRequest, queues=[{"queue": "q"}], wait={"seconds": 5})
    (job,) = (await stub.Pull(pull)).jobs
    view = await server.runtime.jobs.get_job(job.id)
    assert (view.attempts, view.stalls) == (0, 0)


async def test_a_mistake_in_the_middle_of_a_delivery_is_told(
    server: RunningServer, channel: aio.Channel
) -> None:
    """GRPC cannot send a status while a write is under way: the stream must not hang there."""
    stub = JobServiceStub(channel)
    payloads = [bytes(500_000)] * 30
    await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=payloads))

    for _ in range(20):
        stream = stub.Stream()
        opening = {"queues": [{"queue": "q"}]}
        await stream.write(frame(open=opening, window={"max_in_flight": 1_000}))
        await stream.write(frame(open=opening))
        with pytest.raises(aio.AioRpcError) as caught:
            await read_to_the_end(stream)
        assert refusal_of(caught.value).reason == "PROTOCOL_MISTAKE"
    await until(lambda: len(server.server.admission.streams) == 0)


async def read_to_the_end(stream: Any) -> None:
    """Reads until the stream ends."""
    while await stream.read() is not aio.EOF:
        pass


async def test_streams_are_bounded(transport: str) -> None:
    """One more is refused with TOO_MANY_CALLS."""
    options: dict[str, Any] = {"transport": transport, "max_streams": 1}
    async with running_server(**options) as server, connect(server.address) as channel:
        stub = JobServiceStub(channel)
        stream, _ = await opened(stub)

        # Nothing is written to it: where a write meets the end of its call, the client of grpc.aio
        # puts INTERNAL in the place of the status that came (grpc/grpc#36066).
        with pytest.raises(aio.AioRpcError) as caught:
            await stub.Stream().read()

        assert refusal_of(caught.value).reason == "TOO_MANY_CALLS"
        assert (await only(server)).session
        stream.cancel()


async def test_both_sides_hear_heartbeats(transport: str) -> None:
    """An idle stream sends empty frames at the announced interval."""
    options: dict[str, Any] = {"transport": transport, "heartbeat_seconds": 0.05}
    clock = ManualClock()
    async with (
        running_server(clock=clock, **options) as server,
        connect(server.address) as channel,
    ):
        stream, answer = await opened(JobServiceStub(channel))
        assert answer.heartbeat_interval.ToMilliseconds() == 50

        server.advance(50)

        assert (await stream.read()).ByteSize() == 0
        stream.cancel()


async def test_a_worker_that_falls_silent_is_cut_off(transport: str) -> None:
    """Three intervals without a frame, and not before."""
    options: dict[str, Any] = {"transport": transport, "heartbeat_seconds": 0.05}
    clock = ManualClock()
    async with (
        running_server(clock=clock, **options) as server,
        connect(server.address) as channel,
    ):
        stream, _ = await opened(JobServiceStub(channel))
        server.advance(149)
        assert (await stream.read()).ByteSize() == 0

        server.advance(1)

        with pytest.raises(aio.AioRpcError) as caught:
            await read_to_the_end(stream)

        assert caught.value.code() is not grpc.StatusCode.INTERNAL
        assert refusal_of(caught.value).reason == "PROTOCOL_MISTAKE"


async def test_an_old_stream_is_asked_to_move(server: RunningServer, channel: aio.Channel) -> None:
    """So that load spreads over servers; the goaway has the time of the end."""
    stream, _ = await opened(JobServiceStub(channel))

    async with asyncio.timeout(50):
        while not await server.runtime.streams.send_away_old(0):  # noqa: ASYNC110  # it ages
            await asyncio.sleep(0)

    told = await stream.read()
    assert told.goaway.reason
    assert told.goaway.HasField("close_time")
    stream.cancel()
