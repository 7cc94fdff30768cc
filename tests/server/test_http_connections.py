"""Connections to the HTTP port: callers that leave or do not read, the end of the server, and which
connection goes where there are too many.
"""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import time
from collections.abc import AsyncIterator

import pytest
from grpc import aio

from jobline.v1 import job_service_pb2
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.testing import RunningServer, running_server
from jobline_server.web import connections, exchange
from jobline_server.web import server as web_server
from tests.server.conftest import until
from tests.server.http_calls import call_json, client_of, post, refusal_in
from tests.server.raw_http import PUSH, WAITING_PULL, Raw, head, is_served, port_of, whole


@pytest.fixture
async def raw(server: RunningServer) -> AsyncIterator[Raw]:
    """A connection to a server of the test's own."""
    connection = await Raw.to(server)
    yield connection
    connection.writer.close()


async def test_unread_replies_end_the_connection(
    server: RunningServer, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller that reads nothing holds neither memory nor a connection."""
    state = port_of(server).server_state
    await until(lambda: len(state.connections) == 1)
    monkeypatch.setattr(connections, "EXCHANGE_SECONDS", 0.2)
    request = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
    raw.send(request * 100)  # 15 MB

    await until(lambda: not state.connections and not state.tasks)


async def test_a_reply_does_not_wait_for_an_acknowledgement(
    server: RunningServer, raw: Raw
) -> None:
    """Its head and its body are two writes, of which Nagle's algorithm would hold the second."""
    raw.send(whole("JobService/Push", PUSH))
    assert (await raw.reply())[0] == 200

    (connection,) = port_of(server).server_state.connections
    opened = connection.transport.get_extra_info("socket")
    assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_unread_replies_of_calls_are_counted(server: RunningServer, raw: Raw) -> None:
    """Among those of gRPC, whose bound they share; a caller that reads on gets all of it."""
    big = json.dumps({"queue": "q", "payloads": [base64.b64encode(bytes(9_000_000)).decode()]})
    pull = b'{"queues": [{"queue": "q"}], "maxMessageBytes": "20000000"}'
    async with client_of(server) as client:
        await call_json(client, "JobService/Push", json.loads(big))
    admission = server.server.admission

    raw.send(whole("JobService/Pull", pull))
    await until(lambda: admission.reply_bytes > 12_000_000)

    status, _, body = await raw.reply()
    assert status == 200
    assert len(json.loads(body)["jobs"][0]["payload"]) == 12_000_000
    await until(lambda: admission.reply_bytes == 0)


async def test_a_caller_that_leaves_gets_no_jobs(
    server: RunningServer, raw: Raw, channel: aio.Channel
) -> None:
    """Its pull is over at once, and the next one gets the job as if it had never waited."""
    raw.send(whole("JobService/Pull", WAITING_PULL))
    pulls = server.server.admission.pulls
    await until(lambda: len(pulls) == 1)

    raw.writer.close()

    await until(lambda: not len(pulls))
    await JobServiceStub(channel).Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"]))
    async with client_of(server) as client:
        found = await call_json(client, "JobService/Pull", json.loads(WAITING_PULL))
    assert found["jobs"][0]["attempt"] == 1
    assert found["jobs"][0]["reason"] == "LEASE_REASON_FIRST"


async def test_a_reply_that_could_not_be_written_gives_its_jobs_back(
    server: RunningServer, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller leaves between the lease and the reply: the job is ready again at once."""
    leased, go_on = asyncio.Event(), asyncio.Event()
    check = exchange.Watch.check

    async def late(watch: exchange.Watch) -> None:
        leased.set()
        await go_on.wait()
        await check(watch)

    async with client_of(server) as client:
        await post(client, "JobService/Push", PUSH)
        with monkeypatch.context() as patch:
            patch.setattr(exchange.Watch, "check", late)
            raw.send(whole("JobService/Pull", WAITING_PULL))
            await leased.wait()
            raw.writer.close()
            await until(lambda: not port_of(server).server_state.tasks)

        found = await call_json(client, "JobService/Pull", json.loads(WAITING_PULL))
    assert found["jobs"][0]["attempt"] == 1
    go_on.set()


async def test_waiting_calls_end_with_the_server(transport: str) -> None:
    """They are told to come again; nobody waits for them, nor for half requests."""
    async with running_server(transport=transport) as server:
        raw, half = await Raw.to(server), await Raw.to(server)
        raw.send(whole("JobService/Pull", WAITING_PULL))
        half.send(head("JobService/Push", "Content-Length: 9") + b"{")
        await until(lambda: len(server.server.admission.pulls) == 1)
        began = time.monotonic()
    assert time.monotonic() - began < web_server.REPLIES_SECONDS + 5

    status, _, body = await raw.reply()
    assert (status, refusal_in(json.loads(body)).reason) == (503, "DRAINING")
    assert await raw.is_closed()
    assert await half.is_closed()


async def test_stop_of_the_port_waits_for_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that waits for its next request is closed, and with it the stop is over."""
    async with running_server() as server:
        raw = await Raw.to(server)
        raw.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await raw.reply())[0] == 200
        state = port_of(server).server_state
        assert len(state.connections) == 1

        with monkeypatch.context() as patch:
            patch.setattr(asyncio.get_running_loop(), "call_at", _refuse_timer)
            await server.server._close_http()

        assert not state.connections
        assert await raw.is_closed()


def _refuse_timer(when: float, *_: object, **__: object) -> None:
    raise AssertionError(f"a timer at {when}")


async def test_idle_connections_make_room_before_calls(transport: str) -> None:
    """A long poll goes on while others come and go."""
    async with running_server(transport=transport, max_http_connections=10) as server:
        raw = await Raw.to(server)
        raw.send(whole("JobService/Pull", WAITING_PULL))
        await until(lambda: len(server.server.admission.pulls) == 1)
        others = [await Raw.to(server) for _ in range(30)]
        for other in others[-5:]:
            other.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await other.reply())[0] == 200

        raw.send(b"")
        assert await is_served(server)
        assert "jobs" in json.loads((await raw.reply())[2])
        for other in others:
            other.writer.close()
