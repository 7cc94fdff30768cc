"""A request and its reply, over ASGI: reads a body within bounds, writes a reply in pieces, and
notices when the caller is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, Self

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# Under this name is the caller's certificate: no header can have it, for its colon.
CERTIFICATE = ":certificate"
# Replies are written in pieces of this size, each when the connection has room for it: so a reply
# is in memory once, and its task lasts until nearly all of it is read.
PIECE_BYTES = 64 << 10
# A body up to this size is always read, so that many large ones, or slow ones, are in nobody's way.
FREE_BODY_BYTES = 64 << 10
# What bodies have beyond that, all together.
BODY_BYTES_MAX = 256 << 20


class CallerGone(Exception):
    """The connection was closed before the end of the exchange."""


class TooLarge(Exception):
    """A body has more bytes than a message may have."""


class TooMany(Exception):
    """Bodies that are read at the moment have as many bytes as there is room for."""


class BodyRoom:
    """Counts the bytes of large bodies in memory."""

    def __init__(self) -> None:
        self._used = 0

    @asynccontextmanager
    async def reading(self, receive: Receive, bytes_max: int) -> AsyncIterator[bytes]:
        """Yields the body of a request, and counts it for the length of the block. Raises
        `TooLarge` or `TooMany` as soon as that is so, or `CallerGone`.
        """
        pieces: list[bytes] = []
        size = counted = 0
        try:
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise CallerGone
                pieces.append(message["body"])
                size += len(message["body"])
                if size > bytes_max:
                    raise TooLarge
                beyond = max(size - FREE_BODY_BYTES, 0)
                self._used += beyond - counted
                counted = beyond
                if counted and self._used > BODY_BYTES_MAX:
                    raise TooMany
                if not message["more_body"]:
                    break
            yield b"".join(pieces)
        finally:
            self._used -= counted


class Watch:
    """Watches the caller while a call is answered: cancels the running task when the caller leaves.
    Use it as a context manager, once the body is read; it raises `CallerGone` then.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._is_gone = False
        self._task = asyncio.current_task()
        self._watcher: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._watcher = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # Its frames, which hold this object, stay with its `CancelledError`, which it holds itself.
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.cancel()
        if self._is_gone and isinstance(error, asyncio.CancelledError):
            if self._task is not None:
                self._task.uncancel()
            raise CallerGone from None

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._is_gone = True
        if self._task is not None:
            self._task.cancel()

    async def check(self) -> None:
        """Raises `CancelledError` if the caller had left by now: uvicorn would drop the reply in
        silence. It takes two turns of the loop until the watcher has heard of it.
        """
        for _ in range(2):
            await asyncio.sleep(0)  # noqa: TID251  # it does not wait


async def write(send: Send, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
    """Writes a reply; waits while the caller does not read."""
    named = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    named.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": named})
    rest = memoryview(body)
    while len(rest) > PIECE_BYTES:
        piece, rest = rest[:PIECE_BYTES], rest[PIECE_BYTES:]
        await send({"type": "http.response.body", "body": bytes(piece), "more_body": True})
    await send({"type": "http.response.body", "body": bytes(rest), "more_body": False})
