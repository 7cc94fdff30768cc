"""Ends server streams of gRPC whose callers do not read.

gRPC holds back what a caller does not read, and pings do not show that it will not read at all: it
would keep its place among the watchers for ever. A message has a time limit that grows with its
size. Then the handler ends and its place is free. The status waits behind the message: grpc.aio
cannot end a call otherwise, and would keep it open without one. A caller that reads on gets what
was written before and then CUT_OFF, and resumes after the last message it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import grpc
from grpc import aio

from jobline_server.rpc.errors import make_status
from jobline_server.rpc.guard import Context, Handler, end_call
from jobline_server.telemetry.log import logger

LOG = logger("rpc")

# For each message, beside the time for its bytes.
MESSAGE_SECONDS = 30.0
# Bytes are taken at least at this rate.
BYTES_PER_SECOND_MIN = 16 << 10
CUT_OFF = make_status(
    grpc.StatusCode.UNAVAILABLE, "CUT_OFF", "the caller does not read; resume after what it has"
)


class TimedWrites:
    """The context of a server stream; a write that takes too long cancels the call."""

    __slots__ = ("_context", "is_cut_off")

    def __init__(self, context: Context) -> None:
        self._context = context
        self.is_cut_off = False

    def peer(self) -> Any:
        """Returns who calls."""
        return self._context.peer()

    def invocation_metadata(self) -> Any:
        """Returns the metadata of the call."""
        return self._context.invocation_metadata()

    async def write(self, message: bytes) -> None:
        """Sends a message; waits while the caller does not read, up to its time limit."""
        loop = asyncio.get_running_loop()
        seconds = MESSAGE_SECONDS + len(message) / BYTES_PER_SECOND_MIN
        timer = loop.call_later(seconds, self._cut_off, asyncio.current_task())
        try:
            await self._context.write(message)
        finally:
            timer.cancel()

    def _cut_off(self, task: asyncio.Task[Any] | None) -> None:
        LOG.info("cut off a caller that does not read", peer=self._context.peer())
        if task is not None:
            self.is_cut_off = True
            task.cancel()

    async def abort(
        self,
        code: grpc.StatusCode,
        details: str = "",
        trailing_metadata: Sequence[tuple[str, Any]] = (),
    ) -> NoReturn:
        """Ends the call with a status."""
        await self._context.abort(code, details, trailing_metadata)


def ending_slow(handlers: Mapping[str, Handler]) -> dict[str, Handler]:
    """Returns handlers whose server streams end where the caller does not read."""
    return {
        path: _timed(handler)
        if handler.response_streaming and not handler.request_streaming
        else handler
        for path, handler in handlers.items()
    }


def _timed(handler: Handler) -> Handler:
    serve: Any = handler.unary_stream

    async def call(raw: bytes, context: Context) -> None:
        writes = TimedWrites(context)
        try:
            await serve(raw, writes)
        except asyncio.CancelledError:
            # A caller that is gone, or a server that stops, cancels the call, too: once more then.
            if not writes.is_cut_off:
                raise
        if writes.is_cut_off:
            # The caller may be gone by now.
            with suppress(aio.UsageError, aio.InternalError):
                await end_call(context, CUT_OFF)

    return grpc.unary_stream_rpc_method_handler(call)
