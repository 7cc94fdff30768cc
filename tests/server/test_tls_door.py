"""Doors: bytes that come by TLS are passed on to a socket, and back; nothing is kept in between."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from benchmarks.http2 import DATA, PREFACE, frame
from jobline_server.auth.tls_files import TlsFiles
from jobline_server.rpc.tls import callers as callers_module
from jobline_server.rpc.tls.callers import MARK, DoorCallers
from jobline_server.rpc.tls.door import TlsDoor, _Inside, _Outside
from jobline_server.rpc.tls.marks import Marker
from tests.server.authorities import HOST, Files, context_of
from tests.server.conftest import until

Served = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
MANY = 32 << 20
# More than the buffers of two sockets and of TLS hold.
BUFFERS = 16 << 20
FRAME = frame(DATA, 0, 1, bytes(1 << 16))


@asynccontextmanager
async def door_to(files: Files, serve: Served, callers: DoorCallers) -> AsyncIterator[TlsDoor]:
    """A door with a socket behind it."""
    behind = files.folder / "behind.sock"
    server = await asyncio.start_unix_server(serve, behind)
    door = TlsDoor("127.0.0.1:0", TlsFiles(files.certificate, files.key, None), callers, behind)
    await door.open()
    try:
        yield door
    finally:
        server.close()
        await door.close()


async def connected(
    door: TlsDoor, authority: trustme.CA, protocols: list[str]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = context_of(authority)
    if protocols:
        context.set_alpn_protocols(protocols)
    return await asyncio.open_connection(
        "127.0.0.1", door.number, ssl=context, server_hostname=HOST
    )


async def is_cut_off(door: TlsDoor, authority: trustme.CA, protocols: list[str]) -> bool:
    """Returns whether a connection ends without a word."""
    try:
        reader, writer = await connected(door, authority, protocols)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        return not await reader.read(1)
    except (ConnectionError, ssl.SSLError):
        return True


async def wait_until_stuck(count: Callable[[], int]) -> None:
    """Until a number does not grow any more."""
    before = -1
    while count() != before:
        before = count()
        await asyncio.sleep(0.1)  # what is shown is that nothing happens


async def test_a_caller_that_does_not_read_holds_up_what_is_behind(
    files: Files, authority: trustme.CA
) -> None:
    """Nothing is kept for it but what buffers hold, and it gets all once it reads."""
    sent = 0

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while sent < MANY:
            writer.write(bytes(1 << 16))
            await writer.drain()
            sent += 1 << 16
        writer.close()

    async with door_to(files, serve, DoorCallers()) as door:
        reader, writer = await connected(door, authority, ["h2"])
        await wait_until_stuck(lambda: sent)
        assert sent < BUFFERS
        assert await reader.read(-1) == bytes(MANY)
        writer.close()


async def test_what_is_behind_holds_up_a_caller(files: Files, authority: trustme.CA) -> None:
    """A server that does not take what comes has it wait in the network, and gets all of it."""
    may_read, got = asyncio.Event(), bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await may_read.wait()
        while data := await reader.read(1 << 16):
            got.extend(data)
        writer.close()

    async with door_to(files, serve, DoorCallers()) as door:
        _, writer = await connected(door, authority, ["h2"])
        writer.write(PREFACE)
        sent = 0

        async def send() -> None:
            nonlocal sent
            while sent < MANY:
                writer.write(FRAME)
                await writer.drain()
                sent += len(FRAME)
            writer.close()

        sending = asyncio.create_task(send())
        await wait_until_stuck(lambda: sent)
        assert sent < BUFFERS
        may_read.set()
        await sending
        await until(lambda: len(got) == len(PREFACE) + sent)


@pytest.mark.parametrize("protocols", [[], ["http/1.1"]])
async def test_who_speaks_no_http2_is_cut_off(
    files: Files, authority: trustme.CA, protocols: list[str]
) -> None:
    """Before anything is passed on."""
    came: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        came.append(await reader.read(100))

    async with door_to(files, serve, DoorCallers()) as door:
        assert await is_cut_off(door, authority, protocols)
    assert not came


async def test_a_caller_is_known_until_its_connection_ends(
    files: Files, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a moment longer, for its last calls; then nothing is left of it."""
    monkeypatch.setattr(callers_module, "GONE_SECONDS", 0.01)
    came = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.set()
        await reader.read()
        writer.close()

    callers = DoorCallers()
    async with door_to(files, serve, callers) as door:
        _, writer = await connected(door, authority, ["h2"])
        await came.wait()
        assert len(callers) == 1
        (mark,) = callers._callers
        assert callers._callers[mark].peer.startswith("ipv4:127.0.0.1:")
        made_up = (MARK, "1")
        assert callers.find([("x", "y"), made_up, (MARK, mark)]) == callers._callers[mark]
        assert callers.find([made_up]) is None
        writer.close()
        await until(lambda: not len(callers))


async def test_nobody_behind_it(files: Files, authority: trustme.CA, tmp_path: Path) -> None:
    """A connection that cannot be passed on ends."""
    tls = TlsFiles(files.certificate, files.key, None)
    door = TlsDoor("127.0.0.1:0", tls, DoorCallers(), tmp_path / "none.sock")
    await door.open()
    assert await is_cut_off(door, authority, ["h2"])
    await door.close()


class Recorded(asyncio.Transport):
    """A transport that keeps what was asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.asked.append(f"write {len(data)}")

    def pause_reading(self) -> None:
        self.asked.append("pause")

    def resume_reading(self) -> None:
        self.asked.append("resume")

    def is_closing(self) -> bool:
        return False


async def test_who_sends_much_lets_others_have_their_turn(tmp_path: Path) -> None:
    """What comes next is read in a later iteration, and only if what is behind takes it."""
    outside = _Outside(tmp_path, DoorCallers(), set())
    inside = _Inside(outside)
    outside.transport, inside.transport = Recorded(), Recorded()
    outside.other, outside._marker = inside, Marker("a", "1")
    asked = outside.transport.asked
    outside.data_received(PREFACE + FRAME)
    assert asked == ["pause"]
    assert inside.transport.asked == [f"write {len(PREFACE + FRAME)}"]
    await asyncio.sleep(0)
    assert asked == ["pause", "resume"]

    outside.data_received(FRAME)
    inside.pause_writing()
    await asyncio.sleep(0)
    assert asked[2:] == ["pause", "pause"]
    inside.resume_writing()
    assert asked[4:] == ["resume"]

    outside.data_received(frame(DATA, 0, 1, b"small"))
    await asyncio.sleep(0)
    assert asked[5:] == []
