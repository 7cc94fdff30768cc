"""Calls that take one message, on grpc.aio: the message is read here.

grpc.aio reads it by itself for handlers of one message, and gives up in silence when the caller
ends its side without one: such a call is never answered, and stays open for as long as its
connection. It would also hold the request until the reply was written. So handlers of one message
are registered as handlers of many, which makes no difference on the wire.
"""

from __future__ import annotations

from typing import Any

import grpc
from grpc import aio

from jobline_server.rpc.errors import make_status
from jobline_server.rpc.guard import Context, Handler, end_call

NO_MESSAGE = make_status(
    grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_MESSAGE", "the call brought no message"
)


def reading(handler: Handler) -> Handler:
    """The same handler, reading the one message that it takes."""
    if handler.request_streaming:
        return handler
    serve: Any = handler.unary_stream if handler.response_streaming else handler.unary_unary

    async def call(_messages: object, context: Context) -> Any:
        # Nothing here keeps the message: this coroutine is there until the reply is made.
        raw = [await context.read()]
        if raw[0] is not aio.EOF:
            return await serve(raw.pop(), context)
        await end_call(context, NO_MESSAGE)
        return b""

    if handler.response_streaming:
        return grpc.stream_stream_rpc_method_handler(call)
    return grpc.stream_unary_rpc_method_handler(call)
