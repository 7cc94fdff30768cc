"""Reads the message of calls that take one message, on grpc.aio.

grpc.aio would read it by itself, but gives up in silence when the caller half-closes without one:
such a call is never answered, and stays open as long as its connection. It would also keep the
request until the reply is written. So handlers of one message are registered as handlers of a
stream, which is the same on the wire.
"""

from __future__ import annotations

from typing import Any

import grpc
from grpc import aio

from jobline_server.rpc.errors import make_status
from jobline_server.rpc.guard import Context, Handler, end_call
from jobline_server.rpc.message_waits import MessageWaits

NO_MESSAGE = make_status(
    grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_MESSAGE", "the call brought no message"
)


def reading(handler: Handler, waits: MessageWaits) -> Handler:
    """Returns the handler, wrapped to read its one message, for which it waits among `waits`."""
    if handler.request_streaming:
        return handler
    serve: Any = handler.unary_stream if handler.response_streaming else handler.unary_unary

    async def call(_messages: object, context: Context) -> Any:
        waits.begin(context)
        try:
            # The message is popped, so that this coroutine does not keep it until the reply is
            # made.
            raw = [await context.read()]
        finally:
            ending = waits.end(context)
        if ending is not None:
            await ending
        elif raw[0] is not aio.EOF:
            return await serve(raw.pop(), context)
        else:
            await end_call(context, NO_MESSAGE)
        return b""

    if handler.response_streaming:
        return grpc.stream_stream_rpc_method_handler(call)
    return grpc.stream_unary_rpc_method_handler(call)
