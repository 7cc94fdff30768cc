"""Delivery: whether a reply was taken, as far as a transport knows.

A handler that must know says `when_untaken` what is to be done if its call was over before the
reply could be written. Neither transport tells by itself: both drop what the layer below says of a
reply's end. A caller that goes after its reply was written, and before it has read it, is beyond
any server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

import grpc
from grpc import aio

from jobline_server.rpc.admission import Admission
from jobline_server.rpc.guard import Context, Handler
from jobline_server.rpc.unread import UnreadReplies

# Methods whose handlers must know: what they hand out goes back if nobody takes it.
MUST_KNOW = frozenset({"/jobline.v1.JobService/Pull"})

# Each call has a task of the transport's, and this in the context of that.
_untaken: ContextVar[Callable[[], None] | None] = ContextVar("untaken", default=None)


def when_untaken(callback: Callable[[], None]) -> None:
    """Has `callback` called if the reply of the running call cannot be written."""
    _untaken.set(callback)


def _handle_untaken() -> None:
    callback = _untaken.get()
    if callback is not None:
        _untaken.set(None)
        callback()


def with_written_replies(handlers: Mapping[str, Handler]) -> dict[str, Handler]:
    """For grpcio: a handler that must know writes its reply itself, which tells whether it could be
    written; to the caller a stream of one message is the same. grpc.aio would write it after the
    handler, and swallow the failure.
    """
    return {
        path: _writing(handler) if path in MUST_KNOW else handler
        for path, handler in handlers.items()
    }


def _writing(handler: Handler) -> Handler:
    answer: Any = handler.unary_unary

    async def call(raw: bytes, context: Context) -> None:
        reply = await answer(raw, context)
        if context.done():  # with a status in the reply's place
            _handle_untaken()
            return
        try:
            await context.write(reply)
            # A cancellation that has arrived is seen in a turn of the loop, and until the status is
            # sent no caller has its reply.
            await asyncio.sleep(0)  # noqa: TID251  # it does not wait
        except asyncio.CancelledError:
            _handle_untaken()
            raise
        except aio.InternalError:  # the call was over, and wants no status: see the guard
            _handle_untaken()
            raise asyncio.CancelledError from None

    return grpc.unary_stream_rpc_method_handler(call)


def listen_to_front(server: Any, admission: Admission) -> None:
    """For native: has a server listen to what its front says of each reply. Call it when the server
    has its port, before it starts.
    """
    unread = UnreadReplies(server, admission)
    server._front = _Front(server._front, unread)  # noqa: SLF001  # nothing public tells of a reply's end


class _Front:
    """A native server's front, which is told by the transport whether a call was still there."""

    def __init__(self, front: Any, unread: UnreadReplies) -> None:
        self._front = front
        self._respond = front.respond
        self._add_unread = unread.add

    def respond(
        self, call_id: int, payload: bytes, *, initial_metadata: Any, trailing_metadata: Any
    ) -> bool:
        """Sends a reply, in the task of its call."""
        taken: bool = self._respond(
            call_id,
            payload,
            initial_metadata=initial_metadata,
            trailing_metadata=trailing_metadata,
        )
        if taken:
            self._add_unread(call_id, len(payload))
        else:
            _handle_untaken()
        return taken

    def __getattr__(self, name: str) -> Any:
        return getattr(self._front, name)
