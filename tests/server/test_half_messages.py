"""Calls whose message does not come: they end, and what they hold is bounded."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2

from jobline.v1 import job_service_pb2
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.rpc import message_waits
from jobline_server.testing import RunningServer, running_server
from tests.server.conftest import connect

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
