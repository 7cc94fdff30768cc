"""Serves a stream of events over HTTP: the call `Watch`, whose answers are written as text.

It is the guarded handler that serves gRPC, with its checks, bounds and counts; it gets an object in
place of gRPC's context. What is refused before the first answer is an HTTP status, what ends the
stream later its last event.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import grpc

from jobline_server.engine.commands import Refused
from jobline_server.rpc.admission import Admission, ending
from jobline_server.rpc.connect.calls import ConnectCalls, HttpCall
from jobline_server.rpc.connect.event_query import EventQuery, read_query
from jobline_server.rpc.connect.event_text import EventText, error_text, snapshot_text
from jobline_server.rpc.connect.failures import Failed, Reply, error_reply
from jobline_server.rpc.connect.snapshots import snapshot_parts
from jobline_server.rpc.errors import make_status, status_of

# The method that is served so.
WATCH = "/jobline.v1.JobService/Watch"
# How soon a browser connects again.
RETRY = b"retry: 1000\n"

Write = Callable[[bytes], Awaitable[None]]
Watch = Callable[[bytes, Any], Awaitable[None]]


class EventCall(HttpCall):
    """A watch over HTTP; its handler gets it in place of gRPC's context. `before` yields what comes
    before the first answer.
    """

    __slots__ = ("_before", "_text", "_write", "has_begun")

    def __init__(
        self,
        peer: str,
        headers: Mapping[str, str],
        write: Write,
        text: EventText,
        before: AsyncIterator[bytes],
    ) -> None:
        super().__init__(peer, headers)
        self._write = write
        self._text = text
        self._before = before
        self.has_begun = False

    async def write(self, answer: bytes) -> None:
        """Writes a serialised `WatchResponse`; waits while the reader does not read."""
        if not self.has_begun:
            async for piece in self._before:
                await self.put(piece)
        for number, piece in enumerate(self._text.pieces(answer)):
            if number:
                # The reader may have room for all of it: others have their turn between.
                await asyncio.sleep(0)  # noqa: TID251  # it does not wait
            await self.put(piece)

    async def put(self, piece: bytes) -> None:
        """Writes a piece of text."""
        if not self.has_begun:
            self.has_begun = True
            piece = RETRY + piece
        await self._write(piece)


class HttpEvents:
    """The stream of events, for all readers of a port. `watch` is the handler of `Watch`."""

    def __init__(self, watch: Watch, calls: ConnectCalls, admission: Admission) -> None:
        self._watch = watch
        self._calls = calls
        self._admission = admission
        self._text = EventText()

    async def follow(
        self, verb: str, query: str, headers: Mapping[str, str], peer: str, write: Write
    ) -> Reply | None:
        """Writes events until the stream is over. Returns the refusal of a request, if nothing was
        written.
        """
        try:
            asked = self._read(verb, query, headers)
        except Failed as failed:
            return failed.reply()
        except Refused as refused:
            return error_reply(status_of(refused))
        before = self._before(asked, peer, headers)
        call = EventCall(peer, headers, write, self._text, before)
        await self._watch(asked.request.SerializeToString(), call)
        if call.status is not None:
            if not call.has_begun:
                return error_reply(call.status)
            await call.put(error_text(call.status))
        return None

    def _read(self, verb: str, query: str, headers: Mapping[str, str]) -> EventQuery:
        if verb != "GET":
            status = make_status(grpc.StatusCode.UNIMPLEMENTED, "", "events are read by GET")
            raise Failed(status, http=405, headers=[("allow", "GET")])
        if self._admission.ending:
            raise ending()
        self._admission.check_room()
        return read_query(query, headers)

    async def _before(
        self, asked: EventQuery, peer: str, headers: Mapping[str, str]
    ) -> AsyncIterator[bytes]:
        """Yields the snapshot, if wanted. The watch has begun: no event after it is missed."""
        if asked.snapshot:
            parts = snapshot_parts(
                asked.request, lambda path, request: self._calls.ask(path, request, peer, headers)
            )
            async for path, reply in parts:
                yield snapshot_text(await self._calls.json_of(path, reply))
