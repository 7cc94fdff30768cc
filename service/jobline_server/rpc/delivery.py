"""Delivery: whether a reply was taken, as far as a transport knows.

A handler that must know says `when_untaken` what is to be done if its call was over before the
reply could be written. A native port is told by the layer below; grpc.aio drops what that says of a
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

from jobline_server.rpc.guard import Context, Handler

# Methods whose handlers must know: what they hand out goes back if nobody takes it.
MUST_KNOW = frozenset({"/jobline.v1.JobService/Pull"})

# Each call has a task of the transport's, and this in the context of that.
_untaken: ContextVar[Callable[[], None] | None] = ContextVar("untaken", default=None)


def when_untaken(callback: Callable[[], None]) -> None:
    """Has `callback` called if the reply of the running call cannot be written."""
    _untaken.set(callback)


def handle_untaken() -> None:
    """The reply of the running call was not written."""
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
            handle_untaken()
            return
        try:
            await context.write(reply)
            # A cancellation that has arrived is seen in an iteration of the loop, and until the
            # status is sent no caller has its reply.
            await asyncio.sleep(0)  # noqa: TID251  # it does not wait
        except asyncio.CancelledError:
            handle_untaken()
            raise
        except aio.InternalError:  # the call was over, and wants no status: see the guard
            handle_untaken()
            raise asyncio.CancelledError from None

    return grpc.unary_stream_rpc_method_handler(call)
