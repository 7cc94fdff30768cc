"""A receiver of webhooks over a real socket, which answers as a test says."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple


class Received(NamedTuple):
    """A message that came in."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> Any:
        return json.loads(self.body)


Answer = Callable[[Received], Awaitable[bytes] | bytes]


def status(code: int, *headers: str) -> bytes:
    """An answer without a body."""
    lines = [f"HTTP/1.1 {code} X", *headers, "content-length: 0", "connection: close"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


class Receiver:
    """What came in, in order; `answers` are given one after the other, the last one again."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answers: list[bytes] = [status(200)]
        self.hold = asyncio.Event()
        self.hold.set()
        self.port = 0
        self._news = asyncio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?a=b"

    async def wait(self, count: int) -> list[Received]:
        """Waits until so many came in, and returns all."""
        while len(self.received) < count:
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 20)
        return self.received

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        original = dict(line.split(": ", 1) for line in head[1:] if line)
        headers |= {name.lower(): value for name, value in original.items()}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.received.append(Received(head[0].split(" ")[1], headers, body))
        self._news.set()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        await self.hold.wait()
        writer.write(answer)
        writer.close()


@asynccontextmanager
async def receiving(
    port: int = 0, context: ssl.SSLContext | None = None
) -> AsyncIterator[Receiver]:
    """A receiver for the length of the block; over TLS with a context."""
    receiver = Receiver()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", port, ssl=context)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        receiver.hold.set()
        server.close()
