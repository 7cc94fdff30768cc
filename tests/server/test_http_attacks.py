"""The HTTP port under attack: slow, huge, endless, tiny, nested and unread. What is refused is
refused in bounds of time and memory, and others are served meanwhile.
"""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import time
from collections.abc import AsyncIterator

import pytest

from jobline_server.rpc.transport import message_bytes_max
from jobline_server.testing import RunningServer
from jobline_server.web import connections, exchange
from tests.server.conftest import until
from tests.server.http_calls import PROTO, client_of, post, refusal_in, refusal_of
from tests.server.raw_http import PUSH, Raw, head, is_served, port_of, whole

BODY_BYTES_MAX = message_bytes_max(10 << 20)
STEP_SECONDS_MAX = 0.1
GET_CHUNKED = b"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
async def raw(server: RunningServer) -> AsyncIterator[Raw]:
    """A connection to a server of the test's own."""
    connection = await Raw.to(server)
    yield connection
    connection.writer.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time limits of a fifth of a second."""
    monkeypatch.setattr(connections, "EXCHANGE_SECONDS", 0.2)


async def test_a_slow_body_is_cut_off(server: RunningServer, raw: Raw, impatient: None) -> None:
    """Also one that comes on a connection that was served before."""
    raw.send(whole("JobService/Push", PUSH))
    assert (await raw.reply())[0] == 200

    raw.send(head("JobService/Push", "Content-Length: 1000") + b"{")

    assert await raw.is_closed()
    assert await is_served(server)


async def test_bytes_that_move_earn_time(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte pays for its part of a second: a slow caller gets through."""
    monkeypatch.setattr(connections, "EXCHANGE_SECONDS", 0.1)
    monkeypatch.setattr(connections, "BYTES_PER_SECOND_MIN", 1)
    raw.send(head("JobService/Push", f"Content-Length: {len(PUSH)}"))
    for byte in PUSH:
        raw.send(bytes([byte]))
        await asyncio.sleep(0.01)  # slower than the limit, in all

    assert (await raw.reply())[0] == 200


async def test_bytes_that_moved_buy_no_standstill(
    server: RunningServer, raw: Raw, impatient: None
) -> None:
    """A second for each 16 KiB: who sent ten MiB held their room for ten minutes, in silence."""
    raw.send(head("JobService/Push", f"Content-Length: {10 << 20}") + bytes(9 << 20))

    assert await raw.is_closed()
    assert await is_served(server)


async def test_a_body_over_the_limit_is_refused_by_its_length(raw: Raw) -> None:
    """Before any of it is sent."""
    raw.send(head("JobService/Push", f"Content-Length: {BODY_BYTES_MAX + 1}"))

    status, _, body = await raw.reply()

    refusal = refusal_in(json.loads(body))
    assert (status, refusal.code, refusal.reason) == (429, "RESOURCE_EXHAUSTED", "TOO_LARGE")


async def test_a_body_without_an_end_is_refused_at_the_limit(
    server: RunningServer, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunk after chunk; what comes after the refusal is dropped for a while, then cut off."""
    raw.send(head("JobService/Push", "Transfer-Encoding: chunked"))
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    reply = asyncio.create_task(raw.reply())
    sent = 0
    while not reply.done():
        raw.send(chunk)
        sent += 0x10000
        await raw.writer.drain()
        await asyncio.sleep(0)
    status, _, body = await reply
    assert (status, refusal_in(json.loads(body)).reason) == (429, "TOO_LARGE")
    assert sent < BODY_BYTES_MAX + (16 << 20)  # what sockets hold between the two

    monkeypatch.setattr(connections, "EXCHANGE_SECONDS", 0.2)
    monkeypatch.setattr(connections, "BYTES_PER_SECOND_MIN", 1)  # it earns no time any more
    with pytest.raises(ConnectionError):
        await raw.send_for_ever(chunk)
    assert await is_served(server)


async def test_a_body_of_tiny_chunks_is_refused(server: RunningServer, raw: Raw) -> None:
    """Each chunk costs as much as a small request."""
    raw.send(head("JobService/Push", "Transfer-Encoding: chunked"))
    raw.send(b"1\r\n \r\n" * 100_000)

    assert (await raw.reply())[0] == 400
    assert await raw.is_closed()
    assert await is_served(server)


async def test_a_wrong_body_behind_a_refused_head_leaves_no_stack_in_the_log(
    server: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Both were replied to, and the second reply was an error of uvicorn's: anybody could fill the
    log with stacks.
    """
    for first in (head("JobService/Nothing", "Transfer-Encoding: chunked"), GET_CHUNKED):
        connection = await Raw.to(server)
        connection.send(first + b"zz\r\n")
        assert (await connection.reply())[0] == 400
        assert await connection.is_closed()
    assert await is_served(server)
    assert not [line for line in caplog.records if line.levelname == "ERROR"]


async def test_a_wrong_body_of_a_head_is_no_failure_of_the_server(
    server: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The reply to a HEAD has no body. An exception that reaches the loop is counted, and five in a
    row make a server unhealthy.
    """
    for _ in range(6):
        connection = await Raw.to(server)
        connection.send(GET_CHUNKED.replace(b"GET", b"HEAD") + b"zz\r\n")
        assert await connection.is_closed()
    assert await is_served(server)
    assert not [line for line in caplog.records if line.levelname == "ERROR"]


async def test_chunks_of_a_usual_size_are_taken(raw: Raw) -> None:
    """As clients send them that do not know the length of a body."""
    raw.send(head("JobService/Push", "Transfer-Encoding: chunked"))
    raw.send(b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (PUSH[:9], PUSH[9:])))
    raw.send(b"0\r\n\r\n")

    assert (await raw.reply())[0] == 200


@pytest.mark.parametrize(
    "flood",
    [
        b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(5_000)),
        b"GET / HTTP/1.1\r\nX: " + b"y" * 40_000,
        b"GET /" + b"y" * 40_000,
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    ids=[
        "headers",
        "a long header",
        "a long path",
        "two lengths",
        "other lengths",
        "TLS",
        "HTTP/2",
    ],
)
async def test_what_is_no_request_ends_the_connection(
    server: RunningServer, raw: Raw, flood: bytes
) -> None:
    raw.send(flood)
    raw.send(b"\r\n" * 20)

    assert await raw.is_closed()
    assert await is_served(server)


async def test_pipelined_calls_are_answered_in_order(raw: Raw) -> None:
    """One after the other, whatever is in the pipe behind them."""
    pull = b'{"queues": [{"queue": "q"}]}'
    for _ in range(20):
        raw.send(whole("JobService/Push", PUSH) + whole("JobService/Pull", pull))
    raw.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    pushed, pulled = [], []
    for _ in range(20):
        pushed.append(json.loads((await raw.reply())[2])["firstId"])
        pulled.append(json.loads((await raw.reply())[2])["jobs"][0]["id"])

    assert pushed == pulled
    assert (await raw.reply())[2] == b"well\n"


@pytest.mark.parametrize("size", [BODY_BYTES_MAX + 1, 1 << 28])
async def test_a_gzip_bomb_is_refused(server: RunningServer, size: int) -> None:
    """No more of it is made than a body may have."""
    async with client_of(server) as client:
        for media_type in (PROTO, "application/json"):
            reply = await post(
                client, "JobService/Push", bomb(size), media_type, content_encoding="gzip"
            )

            assert refusal_of(reply).reason == "TOO_LARGE"


def bomb(size: int) -> bytes:
    return gzip.compress(bytes(size), compresslevel=1)


async def test_large_bodies_are_bounded_together(
    server: RunningServer, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While many are read that do not come to an end, small ones are read all the same."""
    monkeypatch.setattr(exchange, "BODY_BYTES_MAX", 1 << 20)
    size = (1 << 20) + exchange.FREE_BODY_BYTES
    raw.send(head("JobService/Push", f"Content-Length: {size + 1}") + b" " * (size - 1000))
    room = port_of(server).config.app._room
    await until(lambda: room._used > (1 << 20) - 2_000)
    async with client_of(server) as client:
        reply = await post(client, "JobService/Push", b" " * 100_000)
        refusal = refusal_of(reply)
        assert (reply.status_code, refusal.reason) == (429, "TOO_MANY_CALLS")
        assert "google.rpc.RetryInfo" in refusal.details
        assert await is_served(server)

        raw.writer.close()
        await until(lambda: room._used == 0)
        assert (await post(client, "JobService/Push", b" " * 100_000)).status_code == 400


@pytest.mark.parametrize("kind", ["one payload", "many values", "too many values", "deep"])
async def test_large_json_does_not_stop_the_loop(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """It is read in a thread, in slices of the interpreter's time."""
    bodies = {
        "one payload": '{"queue": "q", "payloads": ["' + "A" * 13_000_000 + '"]}',
        "many values": '{"queue": "q", "payloads": [' + ",".join(['""'] * 199_000) + "]}",
        "too many values": '{"queue": "q", "payloads": [' + "[]," * 5_000_000 + "]}",
        "deep": "[" * 15_000_000,
    }
    body = bodies[kind].encode()
    # Other processes can only make a step longer.
    tries = [await longest_step(server, monkeypatch, body) for _ in range(2)]
    assert min(tries) < STEP_SECONDS_MAX


async def longest_step(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> float:
    """Pushes a body; returns the processor time of the longest step of the loop meanwhile."""
    longest = 0.0
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        nonlocal longest
        began = time.thread_time()
        run(handle)
        longest = max(longest, time.thread_time() - began)

    gc.collect()
    gc.freeze()
    with monkeypatch.context() as patched:
        patched.setattr(asyncio.Handle, "_run", timed)
        async with client_of(server) as client:
            reply = await post(client, "JobService/Push", body)
    gc.unfreeze()
    assert reply.status_code in {200, 400, 429}
    return longest


async def test_a_socket_of_another_protocol_is_not_opened(raw: Raw) -> None:
    """An upgrade is a plain request: it would leave the bounds on connections."""
    raw.send(
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )

    assert (await raw.reply())[0] == 200
