"""The ways into a server that the fuzzer takes: a client of gRPC, connections of HTTP/2 and of HTTP
that send bytes as they like. Each returns what the server said, to the last byte.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

import grpc
import hpack
from grpc import aio

from benchmarks.http2 import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    frame,
)
from tests.server.calling import CLIENTS_OWN
from tests.server.fuzz_cases import Method

GOAWAY, WINDOW_UPDATE = 7, 8
HEAD_BYTES = 9
# Replies of any size fit into the windows.
WINDOW_MAX = 2**31 - 1
WIDE = frame(SETTINGS, 0, 0, (4).to_bytes(2) + WINDOW_MAX.to_bytes(4))
WIDER = frame(WINDOW_UPDATE, 0, 0, (WINDOW_MAX - 65_535).to_bytes(4))
# Calls that wait are given up after the first, all others must have been answered by the second.
WAITING_SECONDS = 0.3
ANSWER_SECONDS = 15.0
CODES = {code.value[0]: code.name for code in grpc.StatusCode}

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """How a call ended: the name of gRPC's code, `HTTP 415`, or "" where the connection or the
    stream was ended. `said` is what the server said of that, `is_ours` whether Jobline said it and
    not the transport, `replies` the messages before it.
    """

    code: str
    said: bytes = b""
    is_ours: bool = False
    replies: bytes = b""


# gRPC.


async def by_client(
    channel: Any, method: Method, frames: Sequence[bytes], metadata: Headers
) -> Answer:
    """One call by gRPC's own client, with messages that are bytes."""
    seconds = WAITING_SECONDS if method.waits else ANSWER_SECONDS
    said: list[bytes] = []
    make = channel.stream_stream if method.descriptor.client_streaming else channel.unary_stream
    call = None
    try:
        if method.descriptor.client_streaming:
            call = make(method.path)(timeout=seconds, metadata=metadata)
            for one in frames:
                await call.write(one)
            await call.done_writing()
        elif method.descriptor.server_streaming:
            call = make(method.path)(frames[0], timeout=seconds, metadata=metadata)
        else:
            unary = channel.unary_unary(method.path)
            reply = await unary(frames[0], timeout=seconds, metadata=metadata)
            return Answer("OK", replies=reply)
        async for message in call:
            said.append(message)  # noqa: PERF401  # those before an error count, too
    except aio.AioRpcError as error:
        return _of_error(error, said)
    except (asyncio.InvalidStateError, aio.InternalError):
        pass  # it was refused before all was written, and the code tells
    return await _of_call(call, said)


def _of_error(error: aio.AioRpcError, said: list[bytes]) -> Answer:
    details, trailing = error.details() or "", error.trailing_metadata() or ()
    if details == CLIENTS_OWN:
        return Answer("")
    more = [value if isinstance(value, bytes) else value.encode() for _, value in trailing]
    text = b"\n".join([details.encode(), *more])
    return Answer(error.code().name, text, bool(more), b"\n".join(said))


async def _of_call(call: Any, said: list[bytes]) -> Answer:
    code, details = (await call.code()).name, await call.details() or ""
    if details == CLIENTS_OWN:
        return Answer("")
    return Answer(code, details.encode(), replies=b"\n".join(said))


# HTTP/2.


async def by_frames(address: str, headers: Headers, frames: bytes, seconds: float) -> Answer:
    """One call on a connection of its own: these headers, then these frames as they are."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    block = hpack.Encoder().encode(headers, huffman=False)
    flags = END_HEADERS if frames else END_HEADERS | END_STREAM
    said = Said()
    try:
        writer.write(PREFACE + WIDE + WIDER + frame(SETTINGS, ACK, 0, b""))
        writer.write(frame(HEADERS, flags, 1, block) + frames)
        async with asyncio.timeout(seconds):
            await said.read(reader)
    except TimeoutError:
        said.is_late = True
    except OSError:
        pass
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    return said.answer()


class Said:
    """What a server said on a connection of HTTP/2 with one call."""

    def __init__(self) -> None:
        self.is_late = False
        self._decoder = hpack.Decoder()
        self._headers: dict[str, str] = {}
        self._bytes: list[bytes] = []
        self._replies: list[bytes] = []

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Reads frames until the call or the connection has ended."""
        # Headers may be cut, where the end of the connection cut them.
        with suppress(asyncio.IncompleteReadError, hpack.HPACKError):
            while True:
                head = await reader.readexactly(HEAD_BYTES)
                body = await reader.readexactly(int.from_bytes(head[:3]))
                kind, flags = head[3], head[4]
                if kind == HEADERS:
                    for name, value in self._decoder.decode(body):
                        self._note(str(name), str(value))
                elif kind == DATA:
                    self._replies.append(body)
                elif kind == GOAWAY:
                    self._bytes.append(body)
                if kind in {RST_STREAM, GOAWAY} or (kind in {HEADERS, DATA} and flags & END_STREAM):
                    return

    def _note(self, name: str, value: str) -> None:
        self._headers[name] = value
        is_binary = name.endswith("-bin")
        self._bytes.append(b64decode(value + "==") if is_binary else unquote_to_bytes(value))

    def answer(self) -> Answer:
        """Returns what it was."""
        status = self._headers.get("grpc-status", "")
        said, replies = b"\n".join(self._bytes), b"\n".join(self._replies)
        if status.isdecimal():
            is_ours = "grpc-status-details-bin" in self._headers
            return Answer(CODES.get(int(status), f"a code {status}"), said, is_ours, replies)
        if self.is_late:
            return Answer("NONE YET", said, replies=replies)
        http = self._headers.get(":status", "200")
        return Answer("" if http == "200" else f"HTTP {http}", said, replies=replies)


# HTTP.


async def by_http(address: str, request: bytes, seconds: float) -> Answer:
    """One request on a connection of its own; a stream is given up after a while."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    said = b""
    try:
        writer.write(request)
        async with asyncio.timeout(seconds):
            while piece := await reader.read(1 << 16):
                said += piece
    except TimeoutError:
        if not said:
            return Answer("NONE YET")
    except OSError:
        pass
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    if not said:
        return Answer("")  # closed
    said = said.removeprefix(CONTINUE)
    if not said:
        return Answer("NONE YET")
    return Answer(f"HTTP {said.split(b' ', 2)[1].decode()}", said, b'"code"' in said)
