"""Calls at a rate of their own, whatever the server does: HTTP/2 in prepared bytes.

Callers of gRPC's clients wait for their replies, so a slow server is called less. Here each call is
sent at its time, and what it took is counted from that time on. A reply is told from a refusal by
its frames alone: a refusal has no message. That takes some microseconds a call, so that one core
sends what the server's core cannot serve.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field
from struct import Struct
from time import perf_counter
from typing import cast

from benchmarks.bodies import framed
from benchmarks.http2 import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADER_TABLE_SIZE,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_STREAMS,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    call_headers,
    frame,
)

HEAD_BYTES = 9
# The largest frame that a server takes unless it says otherwise, and what a connection may have
# under way before the server gives it more (RFC 9113, 6.5.2 and 6.9.2).
FRAME_BYTES_MAX = 16_384
FIRST_WINDOW = 65_535
# Length and kind, flags, stream.
HEAD = Struct(">IBI")
WINDOW_MAX = 2**31 - 1
TICK_SECONDS = 0.001
# For the replies after the last call.
END_SECONDS = 30.0
# Windows are renewed long before they are used up.
RENEW_BYTES = 1 << 20


@dataclass(slots=True)
class Counted:
    """What became of calls: times of those that were accepted, and how many were refused."""

    accepted: list[float] = field(default_factory=list)
    refused: int = 0
    reset: int = 0


class Connection(asyncio.Protocol):
    """One connection: sends calls and counts their ends."""

    def __init__(self, path: str, message: bytes) -> None:
        self.counted = Counted()
        self.open: dict[int, float] = {}
        self._calls_max = 100
        self._window = FIRST_WINDOW
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        headers, body = call_headers(path), framed(message)
        assert len(body) <= FRAME_BYTES_MAX
        # The two frames of a call, but for the two numbers of its stream.
        self._frames = Struct(f">5sI{len(headers) + 5}sI{len(body)}s")
        first, second = frame(HEADERS, END_HEADERS, 0, headers), frame(DATA, END_STREAM, 0, body)
        self._pieces = first[:5], first[HEAD_BYTES:] + second[:5], body
        self._next = 1
        self._rest = b""
        self._unrenewed = 0
        self._with_message: set[int] = set()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's is none of asyncio's classes.
        self._transport = transport = cast("asyncio.Transport", transport)
        settings = b"".join(
            number.to_bytes(2) + value.to_bytes(4)
            for number, value in ((INITIAL_WINDOW_SIZE, WINDOW_MAX), (HEADER_TABLE_SIZE, 0))
        )
        transport.write(PREFACE + frame(SETTINGS, 0, 0, settings))
        transport.write(frame(WINDOW_UPDATE, 0, 0, (WINDOW_MAX - FIRST_WINDOW).to_bytes(4)))

    def room(self) -> int:
        """Returns how many calls the server allows now: open ones, and bytes of messages."""
        return min(self._calls_max - len(self.open), self._window // len(self._pieces[-1]))

    def send(self, times: list[float]) -> None:
        """Makes a call for each time, at which it was due; there must be room for them."""
        assert self._transport is not None
        pack, (head, between, body) = self._frames.pack, self._pieces
        calls, number = [], self._next
        for due in times:
            self.open[number] = due
            calls.append(pack(head, number, between, number, body))
            number += 2
        self._next = number
        self._window -= len(body) * len(calls)
        self._transport.write(b"".join(calls))

    def data_received(self, data: bytes) -> None:
        """Takes frames apart; most are the three of a reply."""
        data, at = self._rest + data if self._rest else data, 0
        read, last = HEAD.unpack_from, len(data) - HEAD_BYTES
        while at <= last:
            kind, flags, number = read(data, at)
            body = at + HEAD_BYTES
            end = body + (kind >> 8)
            if end > len(data):
                break
            kind &= 0xFF
            if kind == DATA:
                self._with_message.add(number)
                self._renew(end - body)
            elif kind != HEADERS:
                self._take(kind, flags, number, data[body:end])
            elif flags & END_STREAM:
                self._end(number)
            at = end
        self._rest = data[at:]

    def _take(self, kind: int, flags: int, number: int, body: bytes) -> None:
        if kind == RST_STREAM:
            self._with_message.discard(number)
            if self.open.pop(number, None) is not None:
                self.counted.reset += 1
        elif kind == SETTINGS and not flags & ACK:
            self._read_settings(body)
        elif kind == PING and not flags & ACK:
            self._write(frame(PING, ACK, 0, body))
        elif kind == WINDOW_UPDATE and not number:
            self._window += int.from_bytes(body)

    def _end(self, number: int) -> None:
        due = self.open.pop(number, None)
        if due is None:
            return
        if number in self._with_message:
            self._with_message.discard(number)
            self.counted.accepted.append(perf_counter() - due)
            return
        self.counted.refused += 1

    def _renew(self, size: int) -> None:
        self._unrenewed += size
        if self._unrenewed > RENEW_BYTES:
            self._write(frame(WINDOW_UPDATE, 0, 0, self._unrenewed.to_bytes(4)))
            self._unrenewed = 0

    def _read_settings(self, body: bytes) -> None:
        for at in range(0, len(body), 6):
            if int.from_bytes(body[at : at + 2]) == MAX_STREAMS:
                self._calls_max = int.from_bytes(body[at + 2 : at + 6])
        self._write(frame(SETTINGS, ACK, 0, b""))
        if not self.ready.done():
            self.ready.set_result(None)

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    def close(self) -> None:
        """Ends the connection."""
        assert self._transport is not None
        self._transport.abort()


async def connect(
    address: str,
    path: str,
    message: bytes,
    count: int,
    context: ssl.SSLContext | None = None,
) -> list[Connection]:
    """Opens connections, and waits until the server has said how many calls each may have. With a
    `context` they are of TLS.
    """
    host, _, port = address.rpartition(":")
    loop = asyncio.get_running_loop()
    made = []
    for _ in range(count):
        _, one = await loop.create_connection(
            lambda: Connection(path, message), host, int(port), ssl=context
        )
        made.append(one)
    async with asyncio.timeout(10):
        await asyncio.gather(*(one.ready for one in made))
    return made


@dataclass(slots=True)
class Offered:
    """What was offered to a server, and what became of it. `kept_back` were due while a connection
    had as many calls or bytes under way as the server allows: a client waits with them. `late` has
    by how much each look of the load at its sockets was late, which is part of what it measures.
    """

    calls: int
    counted: Counted
    kept_back: int
    seconds: float
    late: list[float]


async def offer(connections: list[Connection], rate: float, seconds: float) -> Offered:
    """Makes calls at a rate; returns once all have ended, or so many seconds after the last."""
    for one in connections:
        one.counted = Counted()
    began = perf_counter()
    sent = kept_back = turn = 0
    late, looked = [], began
    while (passed := perf_counter() - began) < seconds:
        due = int(passed * rate)
        # Equal shares, to each connection that may have more calls.
        while sent + kept_back < due:
            share = min(due - sent - kept_back, 32)
            one = connections[turn % len(connections)]
            turn += 1
            room = min(share, one.room())
            first = sent + kept_back
            one.send([began + (first + index) / rate for index in range(room)])
            sent += room
            kept_back += share - room
        await asyncio.sleep(TICK_SECONDS)
        looked, before = perf_counter(), looked
        late.append(max(0.0, looked - before - TICK_SECONDS))
    until = perf_counter() + END_SECONDS
    while any(one.open for one in connections) and perf_counter() < until:  # noqa: ASYNC110  # of many
        await asyncio.sleep(TICK_SECONDS)
    total = Counted()
    for one in connections:
        total.accepted += one.counted.accepted
        total.refused += one.counted.refused
        total.reset += one.counted.reset
    return Offered(sent, total, kept_back, perf_counter() - began, late)
