"""Handshakes of a crowd: a few in each iteration of the loop, and who is silent holds up nobody."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
import trustme

from jobline_server.auth import tls_files
from jobline_server.auth.handshake_failures import OTHER
from jobline_server.auth.tls_files import TlsFiles
from jobline_server.rpc.tls import handshakes
from jobline_server.rpc.tls.callers import DoorCallers
from jobline_server.rpc.tls.door import TlsDoor
from jobline_server.rpc.tls.handshakes import BEGUN_AT_ONCE, Begin, Handshakes
from jobline_server.telemetry.few_lines import LINES_PER_SECOND
from tests.server.authorities import HOST, Files, context_of
from tests.server.conftest import until

CROWD = 100


class Iterations:
    """Counts the iterations of the loop, and what happens in each."""

    def __init__(self) -> None:
        self.number = 0
        self.begun: Counter[int] = Counter()

    def count(self) -> None:
        self.number += 1
        asyncio.get_running_loop().call_soon(self.count)


@contextmanager
def crowd_at(port: int, first: bytes, count: int = CROWD) -> Iterator[list[socket.socket]]:
    """Connections that have each sent these bytes."""
    crowd = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
    try:
        for one in crowd:
            one.sendall(first)
        yield crowd
    finally:
        for one in crowd:
            one.close()


@asynccontextmanager
async def taking(listener: socket.socket, begin: Begin) -> AsyncIterator[int]:
    """Takes connections; yields the number of the port."""
    listener.bind(("127.0.0.1", 0))
    listener.setblocking(False)
    found = Handshakes(listener, begin)
    found.start()
    try:
        yield listener.getsockname()[1]
    finally:
        await found.stop()


def hello_of(authority: trustme.CA) -> bytes:
    """The first bytes of a client."""
    outgoing = ssl.MemoryBIO()
    context = context_of(authority)
    context.set_alpn_protocols(["h2"])
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=HOST)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


async def test_a_crowd_is_begun_with_a_few_at_a_time(
    files: Files, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the loop serves others in between."""
    iterations, begin = Iterations(), tls_files._Newest.wrap_bio

    def counted(*given: Any, **named: Any) -> ssl.SSLObject:
        iterations.begun[iterations.number] += 1
        return begin(*given, **named)

    monkeypatch.setattr(tls_files._Newest, "wrap_bio", counted)
    tls = TlsFiles(files.certificate, files.key, None)
    door = TlsDoor("127.0.0.1:0", tls, DoorCallers(), files.folder / "none.sock")
    await door.open()
    iterations.count()
    with crowd_at(door.number, hello_of(authority)):
        await until(lambda: iterations.begun.total() == CROWD)
    await door.close()
    assert max(iterations.begun.values()) <= BEGUN_AT_ONCE


async def test_who_is_silent_holds_up_nobody_and_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It costs neither a handshake nor its turn."""
    monkeypatch.setattr(handshakes, "HANDSHAKE_SECONDS", 0.2)
    begun: list[socket.socket] = []

    async def begin(accepted: socket.socket) -> None:
        begun.append(accepted)
        assert accepted.recv(10) == b"hello"  # nothing was taken from it
        accepted.close()

    loop = asyncio.get_running_loop()
    async with taking(socket.socket(), begin) as port:
        with crowd_at(port, b"") as silent, crowd_at(port, b"hello", 1):
            await until(lambda: len(begun) == 1)
            for one in silent:
                one.setblocking(False)
                assert await loop.sock_recv(one, 1) == b""
    assert len(begun) == 1


async def test_a_handshake_that_fails_is_not_the_next_ones_matter() -> None:
    """Whoever speaks no TLS has no more than its own connection."""
    begun: list[bytes] = []

    async def begin(accepted: socket.socket) -> None:
        begun.append(accepted.recv(1))
        accepted.close()
        raise ssl.SSLError("wrong version number")

    async with taking(socket.socket(), begin) as port:
        for _ in range(2):
            with crowd_at(port, b"x", BEGUN_AT_ONCE + 1):
                pass
        await until(lambda: len(begun) == 2 * (BEGUN_AT_ONCE + 1))


async def test_handshakes_that_fail_are_logged_with_their_callers_a_few_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Anybody can fail as often as they like; who goes away without a word is no failure."""
    lines: list[dict[str, Any]] = []
    failed = 0

    class Log:
        def warning(self, what: str, **more: Any) -> None:
            lines.append({"what": what, **more})

    async def begin(accepted: socket.socket) -> None:
        nonlocal failed
        failed += 1
        accepted.close()
        raise OSError if failed == 1 else ssl.SSLError("wrong version number")

    monkeypatch.setattr(handshakes, "LOG", Log())
    async with taking(socket.socket(), begin) as port:
        with crowd_at(port, b"x", 1):
            await until(lambda: failed == 1)
            assert lines == []
        with crowd_at(port, b"x", 3 * LINES_PER_SECOND) as crowd:
            peers = {f"ipv4:127.0.0.1:{one.getsockname()[1]}" for one in crowd}
            await until(lambda: failed == 1 + 3 * LINES_PER_SECOND)
    # The crowd may have come in two seconds.
    assert LINES_PER_SECOND <= len(lines) <= 2 * LINES_PER_SECOND
    assert {line["what"] for line in lines} == {"a handshake failed"}
    assert {line["peer"] for line in lines} <= peers
    assert lines[0]["reason"] == OTHER


class Exhausted(socket.socket):
    """A listener where there is no descriptor for the first connection."""

    refused = 0

    def accept(self) -> Any:
        if not self.refused:
            self.refused += 1
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


async def test_without_descriptors_connections_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """And are taken when there are some again."""
    monkeypatch.setattr(handshakes, "AGAIN_SECONDS", 0.01)
    begun = asyncio.Event()

    async def begin(accepted: socket.socket) -> None:
        accepted.close()
        begun.set()

    listener = Exhausted()
    async with taking(listener, begin) as port:
        with crowd_at(port, b"x", 1):
            await begun.wait()
    assert listener.refused == 1


async def test_a_stop_ends_those_that_wait() -> None:
    """Whose first bytes have not come, and whose handshake is not over."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def begin(accepted: socket.socket) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            accepted.close()
            ended.set()

    async with taking(socket.socket(), begin) as port:
        with crowd_at(port, b"x", 1), crowd_at(port, b"", 1):
            await begun.wait()
    assert ended.is_set()
