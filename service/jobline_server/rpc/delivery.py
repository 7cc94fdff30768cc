"""Delivery: what to do when a reply could not be written.

A handler calls `when_untaken` with a callback, which runs if the call was over before its reply
could be written. The native transport reports that; grpc.aio drops it. No server can know whether a
caller read a reply that was written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

import grpc
from grpc import aio

from jobline_server.rpc.guard import Context, Handler

# Methods that lease jobs: the jobs are released if the reply is not written.
MUST_KNOW = frozenset({"/jobline.v1.JobService/Pull"})

# Each call runs in a task of the transport, with a context of its own.
_untaken: ContextVar[Callable[[], None] | None] = ContextVar("untaken", default=None)


def when_untaken(callback: Callable[[], None]) -> None:
    """Registers a callback for the case that the reply of the running call cannot be written."""
    _untaken.set(callback)


def expect_reply() -> None:
    """Forgets the callback of an earlier call, where tasks of calls inherit a context."""
    _untaken.set(None)


def handle_untaken() -> None:
    """Runs the callback of the running call, whose reply was not written."""
    callback = _untaken.get()
    if callback is not None:
        _untaken.set(None)
        callback()


def with_written_replies(handlers: Mapping[str, Handler]) -> dict[str, Handler]:
    """Returns handlers for grpcio: those in `MUST_KNOW` write their replies themselves, as a stream
    of one message, and so notice a failure. grpc.aio would write the reply after the handler and
    swallow the failure. On the wire both are the same.
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
            # A cancellation that has arrived is raised in the next iteration of the loop. The
            # caller has no reply before the status is sent.
            await asyncio.sleep(0)  # noqa: TID251  # it does not wait
        except asyncio.CancelledError:
            handle_untaken()
            raise
        except aio.InternalError:  # the call was over, and wants no status: see the guard
            handle_untaken()
            raise asyncio.CancelledError from None

    return grpc.unary_stream_rpc_method_handler(call)
