"""A client of HTTP/2 that sends calls and never reads what it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from benchmarks.http2 import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    call_headers,
    frame,
)

CANCEL = 8


def opening(stream: int, path: str) -> bytes:
    """The beginning of a call."""
    return frame(HEADERS, END_HEADERS, stream, call_headers(path))


def request(stream: int, path: str, message: bytes) -> bytes:
    """A call with one message."""
    body = b"\0" + len(message).to_bytes(4) + message
    return opening(stream, path) + frame(DATA, END_STREAM, stream, body)


def reset(stream: int) -> bytes:
    """The end of a call, from its caller."""
    return frame(RST_STREAM, 0, stream, CANCEL.to_bytes(4))


@asynccontextmanager
async def calls_unread(
    address: str, path: str, messages: Iterable[bytes]
) -> AsyncIterator[asyncio.StreamWriter]:
    """A connection on which a call was made with each message, and no reply may be sent: its
    windows are 0."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    no_window = INITIAL_WINDOW_SIZE.to_bytes(2) + (0).to_bytes(4)
    writer.write(PREFACE + frame(SETTINGS, 0, 0, no_window) + frame(SETTINGS, ACK, 0, b""))
    for index, message in enumerate(messages):
        writer.write(request(2 * index + 1, path, message))
    await writer.drain()
    # Only control frames arrive, which must be taken for the connection to go on.
    taking = asyncio.create_task(reader.read(-1))
    try:
        yield writer
    finally:
        taking.cancel()
        writer.close()
        await asyncio.gather(taking, writer.wait_closed(), return_exceptions=True)
