"""Whom the log names as the caller of a stream, which the native transport passes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme
from grpc import aio

from jobline.v1 import job_service_pb2 as pb
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.rpc.access import refusals
from jobline_server.rpc.native_server import NativeServer
from jobline_server.rpc.tls.callers import MARK, UNKNOWN_PEER
from jobline_server.testing import running_server
from tests.server.access import auth_file, of_verbs
from tests.server.authorities import Files, credentials, secure_channel
from tests.server.conftest import connect

LOCAL = "ipv4:127.0.0.1:"


class Log:
    """Keeps who was refused."""

    def __init__(self) -> None:
        self.peers: list[str] = []

    def warning(self, event: str, *, peer: str, **_values: object) -> None:
        assert event == "refused"
        self.peers.append(peer)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    found = Log()
    monkeypatch.setattr(refusals, "LOG", found)
    return found


@pytest.fixture
def guarded(transport: str, tmp_path: Path) -> dict[str, Any]:
    """The settings of a server that knows none of those who call here."""
    return {
        "transport": transport,
        "auth": auth_file(tmp_path, of_verbs()),
        "data": tmp_path / "data",
    }


async def refused(channel: aio.Channel, *metadata: tuple[str, str]) -> None:
    """Has a single call, one with many replies and one both ways refused."""
    stub: Any = JobServiceStub(channel)
    with pytest.raises(aio.AioRpcError):
        await stub.Push(pb.PushRequest(queue="mail", payloads=[b"x"]), metadata=metadata)
    for call in (stub.Watch(pb.WatchRequest(), metadata=metadata), stub.Stream(metadata=metadata)):
        assert await call.code() is grpc.StatusCode.UNAUTHENTICATED


def heads(log: Log) -> list[str]:
    """Who was refused, without the numbers of ports."""
    return [LOCAL if peer.startswith(LOCAL) else peer for peer in log.peers]


@pytest.mark.parametrize("has_socket", [False, True])
async def test_a_stream_of_the_native_transport_has_no_address(
    guarded: dict[str, Any], transport: str, log: Log, tmp_path: Path, *, has_socket: bool
) -> None:
    """Its caller was logged as a Unix socket, which is the server's own. No metadata of the caller
    stands in for the address.
    """
    if has_socket:
        guarded["unix_socket"] = tmp_path / "s"
    async with running_server(**guarded) as server, connect(server.address) as channel:
        await refused(channel, (MARK, "00" * 16), ("x-forwarded-for", "203.0.113.7"))
    of_streams = UNKNOWN_PEER if transport == "native" else LOCAL
    assert heads(log) == [LOCAL, of_streams, of_streams]


async def test_streams_by_tls_have_the_address_of_their_connection(
    guarded: dict[str, Any], log: Log, files: Files, authority: trustme.CA
) -> None:
    guarded |= files.settings()
    async with (
        running_server(**guarded) as server,
        secure_channel(server.address, credentials(authority)) as channel,
    ):
        await refused(channel, (MARK, "00" * 16))
    assert heads(log) == [LOCAL] * 3


async def test_callers_by_a_socket_alone_are_named_so(
    guarded: dict[str, Any], log: Log, tmp_path: Path
) -> None:
    """Without a port there is nobody else."""
    guarded |= {"listen": "", "unix_socket": tmp_path / "s"}
    async with running_server(**guarded), connect(f"unix:{tmp_path / 's'}") as channel:
        await refused(channel)
    assert [peer.partition(":")[0] for peer in log.peers] == ["unix"] * 3


async def test_streams_by_a_socket_beside_tls_are_unknown(
    guarded: dict[str, Any], transport: str, log: Log, files: Files, tmp_path: Path
) -> None:
    """A caller by TLS that hides the mark of its connection is not taken for one by the socket."""
    guarded |= {**files.settings(), "unix_socket": tmp_path / "s"}
    async with running_server(**guarded), connect(f"unix:{tmp_path / 's'}") as channel:
        await refused(channel)
    of_streams = UNKNOWN_PEER if transport == "native" else "unix"
    assert [peer.removesuffix(":") for peer in log.peers[1:]] == [of_streams] * 2


async def test_a_stream_past_the_door_is_refused(files: Files, tmp_path: Path) -> None:
    """As a single call is: where all come by TLS, a stream without a mark hides its caller."""
    settings = {"transport": "native", "data": tmp_path / "data", **files.settings()}
    async with running_server(**settings) as server:
        serving = server.server._doors._serving  # type: ignore[attr-defined]  # its own
        assert isinstance(serving.server, NativeServer)
        async with connect(f"unix:{serving.server._folder}/door-0.sock") as past:
            call: Any = JobServiceStub(past).Watch(pb.WatchRequest())
            assert await call.code() is grpc.StatusCode.UNAVAILABLE
