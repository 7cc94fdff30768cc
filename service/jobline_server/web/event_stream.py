"""The reply that has no end: server-sent events, which a handler that `app` hands in writes as they
happen. This module knows no event.

https://html.spec.whatwg.org/multipage/server-sent-events.html says what readers expect.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from jobline_server.web.exchange import Send

# The path of the stream.
EVENTS = "/events"

HEAD = (
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-store"),
    # nginx would collect what it passes on.
    ("x-accel-buffering", "no"),
)

Write = Callable[[bytes], Awaitable[None]]
Refusal = tuple[int, Sequence[tuple[str, str]], bytes]


class Events(Protocol):
    """What serves the stream."""

    async def follow(
        self, verb: str, query: str, headers: Mapping[str, str], peer: str, write: Write
    ) -> Refusal | None:
        """Writes events until the stream is over; its first write begins the reply. Returns the
        refusal of a request, if nothing was written.
        """


class EventStream:
    """The reply of one reader: its head goes out before its first piece."""

    __slots__ = ("_has_begun", "_send")

    def __init__(self, send: Send) -> None:
        self._send = send
        self._has_begun = False

    async def write(self, piece: bytes) -> None:
        """Writes a piece; waits while the reader does not read."""
        if not self._has_begun:
            self._has_begun = True
            await self._send({"type": "http.response.start", "status": 200, "headers": _encoded()})
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def end(self) -> None:
        """Ends the reply."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def _encoded() -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in HEAD]


def is_stream(scope: Mapping[str, Any]) -> bool:
    """Returns whether a request asks for the stream."""
    return bool(scope["path"] == EVENTS)
