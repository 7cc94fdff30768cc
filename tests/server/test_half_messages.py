"""Calls whose message does not come: they end, and what they hold is bounded."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from benchmarks.http2 import DATA, PREFACE, RST_STREAM, SETTINGS, frame
from jobline.v1 import job_service_pb2
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.rpc import limits, message_waits
from jobline_server.rpc import transport as transport_module
from jobline_server.rpc.guard import Context
from jobline_server.rpc.message_waits import MessageWaits
from jobline_server.testing import RunningServer, running_server
from tests.server.calling import refusal_of
from tests.server.conftest import connect
from tests.server.half_client import opening

PUSH = "/jobline.v1.JobService/Push"
WATCH = "/jobline.v1.JobService/Watch"
CHECK = "/grpc.health.v1.Health/Check"
MESSAGE = job_service_pb2.PushRequest(queue="q", payloads=[b"x"])
WHATEVER = health_pb2.HealthCheckRequest()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks that follow each other at once."""
    monkeypatch.setattr(message_waits, "LOOK_SECONDS", 0.001)


def waiting(channel: aio.Channel, path: str, replies: str = "unary") -> Any:
    """A call whose message does not come."""
    untyped: Any = channel
    call = untyped.stream_stream if replies == "stream" else untyped.stream_unary
    return call(path)()


def health_port(server: RunningServer) -> str:
    """The address of the port with health alone."""
    (address,) = server.server._doors.health_addresses  # type: ignore[attr-defined]  # its own
    return str(address)


async def end_of(call: Any) -> aio.AioRpcError:
    """The error that a call ends with."""
    with pytest.raises(aio.AioRpcError) as caught:
        async with asyncio.timeout(50):
            await (call.read() if hasattr(call, "read") else call)
    return caught.value


@pytest.mark.parametrize(
    ("path", "replies"), [(PUSH, "unary"), (CHECK, "unary"), (WATCH, "stream")]
)
async def test_a_call_whose_message_does_not_come_ends(
    impatient: None, path: str, replies: str
) -> None:
    """It kept what it had sent for ever, up to 16 MiB, and anybody could make ten thousand."""
    async with running_server(transport="grpcio") as server, connect(server.address) as channel:
        error = await end_of(waiting(channel, path, replies))

        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert "did not come" in str(error.details())
        await JobServiceStub(channel).Push(MESSAGE)


async def test_a_stream_behind_the_native_transport_ends(impatient: None) -> None:
    """Calls with a stream of replies go to a server of grpcio there."""
    async with running_server(transport="native") as server, connect(server.address) as channel:
        error = await end_of(waiting(channel, WATCH, "stream"))

        assert error.code() is grpc.StatusCode.UNAVAILABLE


async def test_the_health_port_has_the_same_limit(impatient: None) -> None:
    """Nobody is asked there who they are."""
    async with (
        running_server(transport="grpcio", health_listen="127.0.0.1:0") as server,
        connect(health_port(server)) as channel,
    ):
        error = await end_of(waiting(channel, CHECK))

        assert error.code() is grpc.StatusCode.UNAVAILABLE


async def test_calls_that_wait_are_bounded(
    impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long before they are late; the oldest stay. What is refused is told so, definitely."""
    monkeypatch.setattr(message_waits, "LATE_LOOKS", 1_000_000)
    monkeypatch.setattr(transport_module, "MESSAGES_BYTES_MAX", 0)
    async with running_server(transport="grpcio") as server, connect(server.address) as channel:
        calls = [waiting(channel, PUSH) for _ in range(20)]

        errors = await asyncio.gather(*map(end_of, [*await ended(calls, 4)]))

        assert {refusal_of(error).reason for error in errors} == {"TOO_MANY_CALLS"}
        assert sum(call.done() for call in calls) == 4
        await JobServiceStub(channel).Push(MESSAGE)
        for call in calls:
            call.cancel()


class OneCall:
    """The context of a call of a host; `code`: what it was ended with."""

    def __init__(self, host: int) -> None:
        self._host = host
        self.ended = asyncio.Event()
        self.code: grpc.StatusCode | None = None

    def peer(self) -> str:
        """As gRPC writes it."""
        return f"ipv4:10.0.0.{self._host}:41522"

    async def abort(self, code: grpc.StatusCode, _message: str, _metadata: object) -> None:
        """Ends the call."""
        self.code = code
        self.ended.set()
        raise aio.AbortError


async def test_a_host_with_few_calls_keeps_them(
    impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever else makes as many as it can; and of its own the oldest stay."""
    monkeypatch.setattr(message_waits, "LATE_LOOKS", 1_000_000)
    waits = MessageWaits(5)
    few, many = [OneCall(1), OneCall(1)], [OneCall(2) for _ in range(6)]
    for call in [*many, *few]:
        waits.begin(cast("Context", call))

    for call in many[3:]:
        await call.ended.wait()

    assert {call.code for call in many[3:]} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert not any(call.code for call in [*few, *many[:3]])
    assert all(waits.end(cast("Context", call)) is not None for call in many[3:])
    assert all(waits.end(cast("Context", call)) is None for call in [*few, *many[:3]])
    assert not len(waits)


async def ended(calls: list[Any], count: int) -> list[Any]:
    """The calls that have ended, once they are so many."""
    left, done = {asyncio.ensure_future(call.code()): call for call in calls}, list[Any]()
    while len(done) < count:
        finished, _ = await asyncio.wait(left, timeout=50, return_when=asyncio.FIRST_COMPLETED)
        assert finished
        done += [left.pop(each) for each in finished]
    for each in left:
        each.cancel()
    return done


async def test_the_health_port_refuses_a_message_by_its_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before it comes: a request has the name of a service, and what anybody may send is kept."""
    monkeypatch.setattr(message_waits, "LATE_LOOKS", 1_000_000)
    async with running_server(transport="grpcio", health_listen="127.0.0.1:0") as server:
        host, _, port = health_port(server).rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(PREFACE + frame(SETTINGS, 0, 0, b"") + opening(1, CHECK))
        declared = b"\0" + (limits.HEALTH_BYTES_MAX + 1).to_bytes(4)
        writer.write(frame(DATA, 0, 1, declared))
        async with asyncio.timeout(50):
            while True:
                head = await reader.readexactly(9)
                await reader.readexactly(int.from_bytes(head[:3]))
                if head[3] == RST_STREAM and head[8] == 1:
                    break
        writer.close()


async def test_the_health_port_has_few_calls_of_a_connection() -> None:
    """The others wait at the caller."""
    async with (
        running_server(transport="grpcio", health_listen="127.0.0.1:0") as server,
        connect(health_port(server)) as channel,
    ):
        stub = health_pb2_grpc.HealthStub(channel)
        watches = [stub.Watch(WHATEVER) for _ in range(limits.HEALTH_CALLS_MAX)]
        await asyncio.gather(*(watch.read() for watch in watches))

        with pytest.raises(aio.AioRpcError) as caught:
            await stub.Check(WHATEVER, timeout=0.2)

        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        watches[0].cancel()
        await stub.Check(WHATEVER, timeout=50)
