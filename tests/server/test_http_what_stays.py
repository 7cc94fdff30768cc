"""Memory after a connection of HTTP: it is gone with its end, without the garbage collector. That
visits old objects only once in many million new ones, and what a scrape or a browser leaves is old.
"""

from __future__ import annotations

import asyncio
import gc
import ssl
from collections import Counter

import pytest
import trustme
from h11._state import ConnectionState
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import RequestResponseCycle

from jobline_server.testing import RunningServer, running_server
from jobline_server.web.connections import BoundedProtocol
from jobline_server.web.exchange import Watch
from jobline_server.web.parsing import CountingConnection
from tests.server.authorities import HOST, Files, context_of
from tests.server.conftest import until
from tests.server.raw_http import PUSH, WAITING_PULL, head, port_of, whole

CONNECTION = (BoundedProtocol, CountingConnection, ConnectionState, FlowControl)
PARTS = (*CONNECTION, RequestResponseCycle, Watch)
# What ends with a connection has ended after so many turns of the loop.
TURNS = 50
ANSWERED = {
    "a page": b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
    "nothing there": b"GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "a call": whole("JobService/Push", PUSH),
    "two calls": whole("JobService/Push", PUSH) * 2,
    "a refused call": whole("JobService/Push", b"{}"),
    "events": b"GET /events?queue=q HTTP/1.1\r\nHost: x\r\n\r\n",
    "no request": b"\0\1\2\r\n\r\n",
}
OPEN = {
    "a call that waits": whole("JobService/Pull", WAITING_PULL),
    "half a call": head("JobService/Push", "Content-Length: 9") + b"{",
    "nothing": b"",
}


def parts() -> Counter[type]:
    """How many there are of each part of a connection."""
    return Counter(type(found) for found in gc.get_objects() if isinstance(found, PARTS))


async def come_and_go(
    server: RunningServer, request: bytes, is_answered: bool, tls: ssl.SSLContext | None = None
) -> None:
    """A caller that sends a request, and leaves when its reply begins or its call does."""
    state = port_of(server).server_state
    port = int(server.http.rpartition(":")[2])
    reader, writer = await asyncio.open_connection(HOST, port, ssl=tls)
    writer.write(request)
    if is_answered:
        assert await reader.read(1)
    else:
        await until(lambda: bool(state.tasks if request else state.connections))
    writer.close()
    await until(lambda: not state.connections and not state.tasks)


async def what_stays(
    server: RunningServer, request: bytes, is_answered: bool, tls: ssl.SSLContext | None = None
) -> Counter[type]:
    """The parts that are still there after some callers."""
    await come_and_go(server, request, is_answered, tls)
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            await come_and_go(server, request, is_answered, tls)
        for _ in range(TURNS):
            await asyncio.sleep(0)
        return parts()
    finally:
        gc.enable()


@pytest.mark.parametrize("what", [*ANSWERED, *OPEN])
async def test_nothing_of_a_connection_outlives_it(server: RunningServer, what: str) -> None:
    """Whatever was sent on it, and whoever ended it."""
    assert not await what_stays(server, {**ANSWERED, **OPEN}[what], what in ANSWERED)


async def test_nothing_of_a_connection_by_tls_outlives_it(
    files: Files, authority: trustme.CA
) -> None:
    """Its transport knows what is on it after its end, too."""
    settings = files.settings()
    async with running_server(transport="auto", data=files.folder / "d", **settings) as server:
        for what, request in ANSWERED.items():
            assert not await what_stays(server, request, True, context_of(authority)), what
