"""Clients with TLS that send what no library sends: none is taken for another one."""

from __future__ import annotations

import asyncio

import grpc
import pytest
import trustme
from grpc import aio
from hpack import Decoder

from benchmarks.bodies import framed
from benchmarks.http2 import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PREFACE,
    SETTINGS,
    call_headers,
    frame,
)
from jobline.v1 import job_service_pb2 as pb
from jobline.v1.admin_service_pb2 import GetStatsRequest
from jobline.v1.admin_service_pb2_grpc import AdminServiceStub
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.rpc.native_server import NativeServer
from jobline_server.rpc.tls.callers import MARK, MARK_BYTES
from jobline_server.testing import running_server
from tests.server.authorities import HOST, Files, context_of, credentials, secure_channel
from tests.server.conftest import connect

PUSH = pb.PushRequest(queue="mail", payloads=[b"x"])
PUSH_PATH = "/jobline.v1.JobService/Push"
# Each part of a mark: its kind, and two texts with their lengths.
MARK_SIZE = 1 + 1 + len(MARK) + 1 + 2 * MARK_BYTES

# Of a field, beside those that each call has, and what else HTTP/2 counts. What is left of it by a
# shorter or longer user agent is less than a mark takes.
ROOM = 15_830


def unfinished(name: str, size: int) -> bytes:
    """A field that says it is longer than it is."""
    return bytes([0, len(name)]) + name.encode() + bytes([size])


async def status_of_call(address: str, authority: trustme.CA, last: bytes) -> dict[str, str]:
    """What a call is told whose fields end with these bytes; nothing if its connection ends."""
    context = context_of(authority)
    context.set_alpn_protocols(["h2"])
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(
        host, int(port), ssl=context, server_hostname=HOST
    )
    writer.write(PREFACE + frame(SETTINGS, 0, 0, b""))
    writer.write(frame(HEADERS, END_HEADERS, 1, call_headers(PUSH_PATH) + last))
    writer.write(frame(DATA, END_STREAM, 1, framed(PUSH.SerializeToString())))
    decoder, told = Decoder(), dict[str, str]()
    try:
        async with asyncio.timeout(10):
            while "grpc-status" not in told:
                head = await reader.readexactly(9)
                content = await reader.readexactly(int.from_bytes(head[:3]))
                if head[3] == HEADERS:
                    told |= {str(name): str(value) for name, value in decoder.decode(content)}
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()
    return told


@pytest.mark.parametrize("size", [1, 2, MARK_SIZE - 1, MARK_SIZE, MARK_SIZE + 1])
async def test_a_call_that_swallows_its_mark_is_not_served(
    files: Files, authority: trustme.CA, size: int
) -> None:
    """A client may give its last field the length of what follows it, or of a part of it."""
    settings = files.settings()
    async with running_server(transport="native", data=files.folder / "d", **settings) as server:
        told = await status_of_call(server.address, authority, unfinished("x", size))
        assert told.get("grpc-status") in {None, str(grpc.StatusCode.UNAVAILABLE.value[0])}
        told = await status_of_call(server.address, authority, b"")
        assert told["grpc-status"] == "0"
        async with secure_channel(server.address, credentials(authority)) as channel:
            stats = await AdminServiceStub(channel).GetStats(GetStatsRequest())
        assert stats.pushed_total == 1


async def test_what_a_client_finds_out_is_of_its_own_connection(
    files: Files, authority: trustme.CA
) -> None:
    """The transport tells of a compression that it does not know: the client sees its mark."""
    settings = files.settings()
    async with running_server(transport="native", data=files.folder / "d", **settings) as server:
        last = unfinished("grpc-encoding", MARK_SIZE)
        first = await status_of_call(server.address, authority, last)
        second = await status_of_call(server.address, authority, last)
        for told in (first, second):
            assert told.get("grpc-status") != "0"
        shown = first.get("grpc-message")
        assert shown is None or shown != second.get("grpc-message")


async def test_a_call_past_the_door_is_refused(files: Files) -> None:
    """The socket behind it is the server's own; a call without a mark is served for nobody."""
    settings = files.settings()
    async with running_server(transport="native", data=files.folder / "d", **settings) as server:
        serving = server.server._doors._serving  # type: ignore[attr-defined]  # its own
        assert isinstance(serving.server, NativeServer)
        async with grpc.aio.insecure_channel(f"unix:{serving.server._folder}/door-0.sock") as past:
            with pytest.raises(aio.AioRpcError) as caught:
                await JobServiceStub(past).Push(PUSH)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("tls", [False, True])
async def test_a_mark_takes_no_room_of_metadata(
    files: Files, authority: trustme.CA, *, tls: bool
) -> None:
    """As much passes by TLS as in plaintext."""
    settings = files.settings() if tls else {}
    async with running_server(transport="native", data=files.folder / "d", **settings) as server:
        given = credentials(authority)
        channel = secure_channel(server.address, given) if tls else connect(server.address)
        async with channel:
            await JobServiceStub(channel).Push(PUSH, metadata=[("x", "y" * ROOM)])
            with pytest.raises(aio.AioRpcError):
                await JobServiceStub(channel).Push(PUSH, metadata=[("x", "y" * (ROOM + 100))])
