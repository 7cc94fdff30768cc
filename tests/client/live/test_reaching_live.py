"""A client whose server is not there, hangs, or comes late."""

from __future__ import annotations

import asyncio
import logging
import socket
import time

import pytest

from jobline import JoblineError, NotConnected, OutcomeUnknown, Unavailable
from tests.client.live.either import connected
from tests.client.live.tiny import TinyServer

KINDS = pytest.mark.parametrize("kind", ["blocking", "async"])
# What each call of a client is given, one of each way in which calls are made.
CALLS = [
    ("push", "q", b"x"),
    ("push_many", "q", [b"x"]),
    ("push_payloads", "q", [b"x"]),
    ("ack", (1, 1)),
    ("pull", "q"),
    ("jobs.get", 1),
    ("wait", 1),
]


@pytest.fixture
def hung():
    """An address at which connections are taken, and nothing is ever said."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@KINDS
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0])
async def test_without_a_server_nothing_is_sent(kind, call):
    """Trial B7: a client that never reached its server refuses each call, definitely, in a moment,
    in words that name the address.
    """
    async with connected(kind, "127.0.0.1:1", timeout=0.3) as client:
        with pytest.raises(NotConnected) as refused:
            await client(*call)
    assert refused.value.definite
    # A traceback of forty lines through gRPC would hide the sentence.
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__
    assert isinstance(refused.value, Unavailable)
    assert refused.value.message == "cannot connect to 127.0.0.1:1: connection refused"


@KINDS
async def test_the_first_call_gives_up_after_two_seconds(kind):
    """Trial B7: whatever the client's timeout is."""
    began = time.monotonic()
    async with connected(kind, "127.0.0.1:1") as client:
        with pytest.raises(NotConnected):
            await client("push", "q", b"x")
    assert 1.5 < time.monotonic() - began < 10


@KINDS
async def test_a_server_that_hangs_is_told_from_one_that_answers(kind, hung):
    """Trial B7: it takes the connection and says nothing."""
    async with connected(kind, hung, timeout=0.3) as client:
        with pytest.raises(NotConnected, match="no answer"):
            await client("push", "q", b"x")


@KINDS
async def test_a_server_that_never_says_a_word_is_told_from_none(kind, hung):
    """Trial B7: gRPC itself gives up after a second, within the time of the first call."""
    async with connected(kind, hung) as client:
        with pytest.raises(NotConnected, match="something listens there and says nothing"):
            await client("jobs.get", 1)


@KINDS
@pytest.mark.parametrize("call", [("jobs.get", 1), ("queues.pause", "none")])
async def test_a_refusal_has_the_servers_sentence_alone(tiny, kind, call):
    """Its traceback begins in the client: what gRPC raised says the same again, at length."""
    async with connected(kind, tiny.address) as client:
        with pytest.raises(JoblineError) as refused:
            await client(*call)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


@KINDS
async def test_a_server_that_comes_within_the_time_is_reached(kind):
    """Trial B7: a server that is starting is tried again."""
    server = TinyServer()
    await server.start()
    await server.stop()
    port = int(server.address.rpartition(":")[2])
    async with connected(kind, server.address) as client:
        pushing = asyncio.create_task(client("push", "q", b"x"))
        await asyncio.sleep(0.2)
        await server.start(port)
        assert (await pushing).id == 1
    await server.stop()


@KINDS
async def test_connect_reaches_the_server_or_says_why_not(tiny, kind, hung):
    """Trial B7: `connect` asks at once, and without patience only once."""
    async with connected(kind, tiny.address) as client:
        await client("connect")
    async with connected(kind, "127.0.0.1:1") as client:
        began = time.monotonic()
        with pytest.raises(NotConnected):
            await client("connect", patience=0)
        assert time.monotonic() - began < 1.5
    async with connected(kind, hung, timeout=0.2) as client:
        with pytest.raises(NotConnected, match="no answer"):
            await client("connect")


@KINDS
async def test_a_server_that_has_gone_is_logged_and_its_pushes_are_unknown(tiny, kind, caplog):
    """Trial B7: once connected, a push is repeated, which is logged once, and ends as unknown."""
    caplog.set_level(logging.INFO, "jobline.client")
    async with connected(kind, tiny.address, timeout=0.5) as client:
        await client("push", "q", b"x")
        await tiny.stop()
        with pytest.raises(OutcomeUnknown) as unknown:
            await client("push", "q", b"x")
        assert "ipv4" not in unknown.value.message  # gRPC's own sentence names all it tried
        with pytest.raises(OutcomeUnknown):
            await client("push_many", "q", [b"x"])
        with pytest.raises(JoblineError):
            await client("ack", (1, 1))
        await tiny.start(int(tiny.address.rpartition(":")[2]))
        await until_pushed(client)
    said = [record.getMessage() for record in caplog.records if record.name == "jobline.client"]
    assert len([text for text in said if text.startswith(f"no answer from {tiny.address}")]) == 1
    assert said[-1] == f"{tiny.address} answers again"


async def until_pushed(client):
    """Pushes until gRPC has connected again, which takes it up to three seconds."""
    while True:
        try:
            return await client("push", "q", b"x")
        except OutcomeUnknown:
            continue
