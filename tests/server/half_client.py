"""A client of HTTP/2 that sends calls and never reads what it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING = 0, 1, 3, 4, 6
CANCEL = 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
INITIAL_WINDOW_SIZE = 4


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """One frame."""
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def headers(pairs: Iterable[tuple[str, str]]) -> bytes:
    """A block of headers, each written out."""
    block = b""
    for name, value in pairs:
        block += bytes([0, len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
    return block


def opening(stream: int, path: str) -> bytes:
    """The beginning of a call."""
    block = headers(
        [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "localhost"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ]
    )
    return frame(HEADERS, END_HEADERS, stream, block)


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
