"""Marks: the header that says by which connection a call came, written into HTTP/2 as it passes.

The fields of a call are a HEADERS frame and perhaps CONTINUATION frames, of which the last one has
the flag END_HEADERS (RFC 9113, 6.2 and 6.10). That flag is taken away, and a CONTINUATION frame
with the mark follows. It is a "literal field never indexed, new name" (RFC 7541, 6.2.3), so that
the fields before and after it mean what they meant. Nothing else of a connection is read.
"""

from __future__ import annotations

PREFACE_BYTES = 24
HEAD_BYTES = 9
HEADERS, CONTINUATION = 0x01, 0x09
END_HEADERS = 0x04
NEVER_INDEXED = 0x10
# Longer ones would take more than one byte to say how long they are.
TEXT_BYTES_MAX = 126


class Marker:
    """Marks the calls of one connection, whose bytes come in pieces of any length."""

    __slots__ = ("_field", "_head", "_left", "_mark")

    def __init__(self, name: str, value: str) -> None:
        self._field = bytes([NEVER_INDEXED]) + _text(name) + _text(value)
        # What is left of the frame under way, the begin of the head of the next one, and what
        # follows the frame.
        self._left = PREFACE_BYTES
        self._head = b""
        self._mark = b""

    def feed(self, data: bytes) -> bytes:
        """Takes the bytes that came; returns those to pass on."""
        if self._head:
            data, self._head = self._head + data, b""
        size, at, begin = len(data), 0, 0
        parts: list[bytes] = []
        while True:
            step = min(self._left, size - at)
            at += step
            self._left -= step
            if self._left:
                break
            if self._mark:
                parts += (data[begin:at], self._mark)
                begin, self._mark = at, b""
            if size - at < HEAD_BYTES:
                self._head = data[at:]
                break
            self._left = int.from_bytes(data[at : at + 3])
            flags = data[at + 4]
            if flags & END_HEADERS and data[at + 3] in {HEADERS, CONTINUATION}:
                parts += (data[begin : at + 4], bytes([flags & ~END_HEADERS]))
                begin = at + 5
                self._mark = self._continuation(data[at + 5 : at + HEAD_BYTES])
            at += HEAD_BYTES
        if not parts:
            return data[:at]
        parts.append(data[begin:at])
        return b"".join(parts)

    def _continuation(self, stream: bytes) -> bytes:
        head = len(self._field).to_bytes(3) + bytes([CONTINUATION, END_HEADERS])
        return head + stream + self._field


def _text(text: str) -> bytes:
    """Returns a text as HPACK has it, without Huffman's code (RFC 7541, 5.2)."""
    encoded = text.encode("ascii")
    if len(encoded) > TEXT_BYTES_MAX:
        raise ValueError(f"a mark has at most {TEXT_BYTES_MAX} bytes, not {len(encoded)}")
    return bytes([len(encoded)]) + encoded
