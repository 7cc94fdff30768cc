"""HTTP/2 in bytes, for clients that do what no library lets them do."""

from __future__ import annotations

from collections.abc import Iterable

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
HEADER_TABLE_SIZE, MAX_STREAMS, INITIAL_WINDOW_SIZE = 1, 3, 4


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """One frame."""
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def headers(pairs: Iterable[tuple[str, str]]) -> bytes:
    """A block of headers, each written out."""
    block = b""
    for name, value in pairs:
        block += bytes([0, len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
    return block


def call_headers(path: str) -> bytes:
    """The headers of a gRPC call."""
    return headers(
        [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "localhost"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ]
    )
