"""Both transports: addresses, sizes, what they cannot do, and that they do the same."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio

from benchmarks.http2 import ACK, PING, PREFACE, SETTINGS, frame
from jobline.v1 import admin_service_pb2, job_service_pb2
from jobline.v1.admin_service_pb2_grpc import AdminServiceStub
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.engine.commands import Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS
from jobline_server.rpc import transport as transport_module
from jobline_server.rpc.listening import CannotServe, check_address
from jobline_server.rpc.native_server import clear_leftovers
from jobline_server.rpc.transport import channel_options, choose_transport
from jobline_server.testing import RunningServer, running_server
from tests.server.calling import all_rpcs, method_of, refusal_of
from tests.server.conftest import connect, until
from tests.server.half_client import opening
from tests.server.world import make


async def test_the_transport_in_use_is_told(server: RunningServer, channel: aio.Channel) -> None:
    """In the statistics, under its own name."""
    stats = await AdminServiceStub(channel).GetStats(admin_service_pb2.GetStatsRequest())

    assert stats.transport == server.server.transport


async def test_a_unix_socket_serves_beside_the_port(transport: str, tmp_path: Path) -> None:
    """Both at once, one server."""
    path = tmp_path / "jobline.sock"
    async with running_server(transport=transport, unix_socket=path) as server:
        for address in server.server.addresses:
            async with connect(address) as channel:
                reply = await JobServiceStub(channel).Push(
                    job_service_pb2.PushRequest(queue="q", payloads=[b"x"])
                )
                assert reply.count == 1
        assert len(server.server.addresses) == 2


async def test_a_port_that_is_taken_stops_the_start(transport: str) -> None:
    """Two servers never share a port by accident."""
    async with running_server(transport=transport) as server:
        with pytest.raises(CannotServe, match="cannot listen"):
            async with running_server(transport=transport, listen=server.address):
                pass


async def test_a_port_that_is_taken_is_said_in_the_log_alone(
    transport: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Trial D9: gRPC wrote lines of its own to stderr, and our sentence had no reason."""
    async with running_server(transport=transport) as server:
        capfd.readouterr()
        with pytest.raises(CannotServe, match=r"cannot listen there \(address already in use\)"):
            async with running_server(transport=transport, listen=server.address):
                pass
    assert capfd.readouterr().err == ""


async def test_a_socket_that_is_taken_stops_the_start(transport: str, tmp_path: Path) -> None:
    """And goes on to reach the server that has it."""
    path = tmp_path / "jobline.sock"
    async with running_server(transport=transport, unix_socket=path):
        with pytest.raises(CannotServe, match="another server listens there"):
            async with running_server(transport=transport, unix_socket=path):
                pass
        async with connect(f"unix:{path}") as channel:
            await AdminServiceStub(channel).GetStats(admin_service_pb2.GetStatsRequest())


async def test_a_socket_that_was_left_behind_is_used_again(transport: str, tmp_path: Path) -> None:
    """A server that was killed leaves one."""
    path = tmp_path / "jobline.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    async with (
        running_server(transport=transport, unix_socket=path),
        connect(f"unix:{path}") as channel,
    ):
        await AdminServiceStub(channel).GetStats(admin_service_pb2.GetStatsRequest())


@pytest.mark.parametrize(
    "address", ["7070", "host:", ":7070", "host:port", "host:65536", "host:-1", "host:٧"]
)
def test_addresses_that_mean_nothing_are_refused(address: str) -> None:
    """Before anything is opened."""
    with pytest.raises(CannotServe):
        check_address(address)


def test_sockets_that_cannot_be_made_are_refused(tmp_path: Path) -> None:
    """The kernel's limit on paths, and folders that are not there."""
    with pytest.raises(CannotServe, match="107 bytes"):
        check_address(f"unix:{tmp_path}/{'x' * 108}")
    with pytest.raises(CannotServe, match="no folder"):
        check_address(f"unix:{tmp_path}/nothing/jobline.sock")
    (tmp_path / "notes").write_text("not a socket")
    with pytest.raises(CannotServe, match="not a socket"):
        check_address(f"unix:{tmp_path}/notes")


async def test_a_folder_for_temporary_files_that_is_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The native transport has a socket there; the refusal names TMPDIR, and leaves no socket."""
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))

    with pytest.raises(CannotServe, match=r"107 bytes.*TMPDIR"):
        async with running_server(tmp_path / "data", transport="native"):
            pass
    assert not list(folder.iterdir())


def test_native_is_asked_for_by_name_or_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Auto takes it where it is installed; asked for by name it must be there."""
    assert choose_transport("auto") == "native"
    assert choose_transport("grpcio") == "grpcio"

    monkeypatch.setattr(transport_module, "NATIVE_MODULE", "not_installed_here")

    assert choose_transport("auto") == "grpcio"
    with pytest.raises(CannotServe, match="needs the extra"):
        choose_transport("native")


async def test_a_method_that_is_not_there_is_unimplemented(channel: aio.Channel) -> None:
    """And so is a service."""
    untyped: Any = channel
    for path in ("/jobline.v1.JobService/Nothing", "/nobody.Service/Push"):
        with pytest.raises(aio.AioRpcError) as caught:
            await untyped.unary_unary(path)(b"")
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_the_largest_payload_comes_back(channel: aio.Channel) -> None:
    """10 MiB, pushed and then sent to a worker that accepts this much."""
    payload = bytes(range(256)) * (40 << 10)
    stub = JobServiceStub(channel)

    await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[payload]))
    pull = {"queues": [{"queue": "q"}], "max_message_bytes": 16 << 20}
    reply = await stub.Pull(make(job_service_pb2.PullRequest, **pull))

    assert reply.jobs[0].payload == payload


async def test_a_deadline_ends_a_long_poll(channel: aio.Channel) -> None:
    """The caller's own, before the poll's."""
    request = make(job_service_pb2.PullRequest, queues=[{"queue": "empty"}], wait={"seconds": 60})

    with pytest.raises(aio.AioRpcError) as caught:
        await JobServiceStub(channel).Pull(request, timeout=0.2)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_a_cancelled_pull_gives_nothing_away(
    server: RunningServer, channel: aio.Channel
) -> None:
    """Long polls that were given up leave the server, and take no job with them."""
    stub = JobServiceStub(channel)
    request = make(job_service_pb2.PullRequest, queues=[{"queue": "q"}], wait={"seconds": 60})
    polls = [stub.Pull(request) for _ in range(50)]
    waiting = server.server.admission.pulls
    await until(lambda: len(waiting) == 50)

    for poll in polls:
        poll.cancel()
    await asyncio.gather(*polls, return_exceptions=True)
    await until(lambda: len(waiting) == 0)
    await stub.Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"]))

    reply = await stub.Pull(make(job_service_pb2.PullRequest, queues=[{"queue": "q"}]))
    assert len(reply.jobs) == 1


def test_options_are_those_that_grpc_knows() -> None:
    """Trial E4: gRPC ignores an option whose name is misspelt."""
    found = find_spec("grpc._cython.cygrpc")
    assert found is not None
    library = Path(str(found.origin)).read_bytes()

    for name, _ in channel_options(1 << 20):
        assert name.encode() in library, name


async def test_a_call_without_a_message_is_answered(channel: aio.Channel) -> None:
    """Trial E11: whoever ends its side without a message is told so, and does not wait for ever."""
    untyped: Any = channel
    for rpc in all_rpcs():
        if method_of(rpc).client_streaming:
            continue
        kind = untyped.stream_stream if method_of(rpc).server_streaming else untyped.stream_unary
        call = kind(f"/jobline.v1.{rpc}")(timeout=30)
        await call.done_writing()
        code = await call.code()
        # The native transport finds it by itself, and has a code of its own for it.
        assert code in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL), rpc
        assert "message" in await call.details(), rpc


async def test_too_many_calls_at_once_are_all_answered(transport: str) -> None:
    """Trial E4: 8,000 calls at once meet our own limit and no other: each is served or refused with
    its code, and told when to come back.
    """
    async with (
        running_server(transport=transport, max_calls=400) as server,
        connect(server.address) as first,
        connect(server.address) as second,
    ):
        stubs = [JobServiceStub(channel) for channel in (first, second)]
        pull = make(job_service_pb2.PullRequest, queues=[{"queue": "q"}], wait={"seconds": 60})
        calls = [stubs[index % 2].Pull(pull) for index in range(8_000)]
        meter = server.server.meters.of("jobline.v1.JobService", "Pull")

        def refused() -> int:
            return meter.ended.get("RESOURCE_EXHAUSTED", 0)

        # The native transport has 2,000 calls of a connection open at once; the rest wait.
        await until(lambda: meter.in_flight == 400 and meter.started == 8_000)
        await until(lambda: refused() == 7_600)
        await server.runtime.pushes.push(
            Push("q", DEFAULT_OPTIONS, payloads=Payloads.of([b"x"] * 400))
        )
        answers = await asyncio.gather(*calls, return_exceptions=True)

        errors = [answer for answer in answers if isinstance(answer, aio.AioRpcError)]
        assert len(answers) - len(errors) == 400
        for error in errors:
            refusal = refusal_of(error)
            assert (refusal.code, refusal.reason) == ("RESOURCE_EXHAUSTED", "TOO_MANY_CALLS")
            assert "RetryInfo" in refusal.details


async def test_calls_of_one_connection_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trial E6: gRPC would take calls without a message before any limit of ours is met, each with
    its memory and its task; the native transport has a bound by itself.
    """
    monkeypatch.setattr(transport_module, "CONNECTION_CALLS_MAX", 100)
    async with running_server(transport="grpcio") as server:
        host, _, port = server.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(PREFACE + frame(SETTINGS, 0, 0, b"") + frame(SETTINGS, ACK, 0, b""))
        before = len(asyncio.all_tasks())
        path = "/jobline.v1.JobService/Push"
        writer.write(b"".join(opening(2 * number + 1, path) for number in range(2_000)))
        mark = b"all said"
        writer.write(frame(PING, 0, 0, mark))
        async with asyncio.timeout(30):
            await reader.readuntil(frame(PING, ACK, 0, mark))

        async with connect(server.address) as channel:
            pushed = job_service_pb2.PushRequest(queue="q", payloads=[b"x"])
            await JobServiceStub(channel).Push(pushed)

        assert len(asyncio.all_tasks()) < before + 400  # two a call, and some
        writer.close()


def test_sockets_of_killed_servers_are_removed(tmp_path: Path) -> None:
    """A native server has one for its streams; one that is killed leaves it behind."""
    sockets = {}
    for name in ("dead", "alive", "new"):
        path = tmp_path / f"jobline-native-{name}" / "streams.sock"
        path.parent.mkdir()
        sockets[name] = socket.socket(socket.AF_UNIX)
        sockets[name].bind(str(path))
        if name != "new":
            os.utime(path, (1_000, 1_000))
    sockets["alive"].listen()
    sockets["dead"].close()
    sockets["new"].close()

    clear_leftovers(tmp_path)

    left = {folder.name for folder in tmp_path.iterdir()}
    assert left == {"jobline-native-alive", "jobline-native-new"}
    sockets["alive"].close()
