"""The guard: wraps every handler, once, when the table of handlers is made.

Handlers are registered on bytes, so decoding and encoding are done here: malformed bytes become
INVALID_ARGUMENT instead of gRPC's UNKNOWN, and a handler may reply with bytes it wrote itself. Each
exception of a handler becomes a status by the table in `errors`; an unexpected one is logged under
an incident number, and the caller gets only the number. `CancelledError` passes through, because
gRPC would leak the call's native memory otherwise.

Nothing of a call outlives it. A status is sent outside of every `except`, because grpc.aio keeps
the exception that ends a call, and an exception keeps the one before it with all its frames.

Interceptors of grpc.aio would do the same, but cost several awaits per call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from grpc import aio

from jobline_server.engine.commands import Refused
from jobline_server.rpc.admission import Admission, OpenCall, ending
from jobline_server.rpc.audit_log import is_operation, logged
from jobline_server.rpc.decoding import Decode, Malformed, decoder
from jobline_server.rpc.errors import Status, StatusError, bug_status, malformed_status, status_of
from jobline_server.telemetry.calls import CallMeter, CallMeters
from jobline_server.telemetry.log import logger

LOG = logger("rpc")

Context = aio.ServicerContext[Any, Any]
Reply = Message | bytes
# grpcio itself is not generic; only its types are.
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Unary = Callable[[Any, Context], Awaitable[Reply]]
ServerStream = Callable[[Any, Context], AsyncGenerator[Reply, None]]
UnaryAnswer = Callable[[bytes, Any], Awaitable[bytes]]
"""A guarded unary handler: from the bytes of a request and gRPC's context to the reply's bytes."""


# The status of a waiting call that the server ends.
ENDING_STATUS = status_of(ending())


class Frames:
    """The messages of a bidirectional call; one task may read, and one may write."""

    __slots__ = ("_context", "_decode")

    def __init__(self, context: Context, decode: Decode) -> None:
        self._context = context
        self._decode = decode

    async def read(self) -> Any:
        """Returns the next message; None when the caller has half-closed or is gone."""
        raw = await self._context.read()
        return None if raw is aio.EOF else self._decode(raw)

    async def write(self, message: bytes) -> None:
        """Sends a message; waits while the caller does not read."""
        await self._context.write(message)

    def attach(self, stop: Callable[[], None]) -> None:
        """Takes what ends the handler, for those who may have to end the call."""


Bidi = Callable[[Frames], Awaitable[None]]
ServeBidi = Callable[[Context], Awaitable[None]]


class Access(Protocol):
    """Asks who calls, and whether they may. It wraps methods, and has them take bytes."""

    def is_open(self, path: str) -> bool:
        """Returns whether a method is for everybody."""

    def unary(self, path: str, function: Unary, decode: Decode) -> Unary:
        """Wraps a unary method."""

    def server_stream(self, path: str, function: ServerStream, decode: Decode) -> ServerStream:
        """Wraps a method with a stream of replies."""

    def bidi(self, path: str, function: Bidi, decode: Decode) -> ServeBidi:
        """Wraps a bidirectional method."""


@dataclass(slots=True)
class Guard:
    """Makes handlers of servicers' methods. `clock` returns seconds and never goes back. `name`, of
    the process, is part of incident numbers. `replies_outlive`: whether the transport's task of a
    call lasts until its reply is written; if not, a call is over when the reply is made. `access`:
    asks who calls; None: everybody may.
    """

    clock: Callable[[], float]
    meters: CallMeters
    name: str = ""
    admission: Admission = field(default_factory=Admission)
    replies_outlive: bool = True
    access: Access | None = None
    incidents: int = 0

    def handlers(
        self, service: ServiceDescriptor, servicer: object, name: str | None = None
    ) -> dict[str, Handler]:
        """Returns the handlers of a service by method; `name` replaces the descriptor's name."""
        service_name = name or service.full_name
        return {
            method.name: self._handler(
                f"/{service_name}/{method.name}",
                method,
                getattr(servicer, method.name),
                self.meters.of(service_name, method.name),
            )
            for method in service.methods
        }

    def _handler(
        self, path: str, method: MethodDescriptor, function: Any, meter: CallMeter
    ) -> Handler:
        decode = decoder(method)
        access = None if self.access is None or self.access.is_open(path) else self.access
        if method.client_streaming:
            serve = _serving(function, decode)
            if access is not None:
                serve = access.bidi(path, function, decode)
            return grpc.stream_stream_rpc_method_handler(self._bidi(serve, meter))
        if method.server_streaming:
            if access is not None:
                function, decode = access.server_stream(path, function, decode), _as_it_is
            stream = self._server_stream(function, decode, meter)
            return grpc.unary_stream_rpc_method_handler(stream)
        return grpc.unary_unary_rpc_method_handler(
            self.unary(path, method, function, meter, access)
        )

    def unary(
        self,
        path: str,
        method: MethodDescriptor,
        function: Any,
        meter: CallMeter,
        access: Access | None,
    ) -> UnaryAnswer:
        """Returns the guarded handler of a unary method."""
        decode = decoder(method)
        if is_operation(method):
            function = logged(method, function)
        if access is not None:
            function, decode = access.unary(path, function, decode), _as_it_is
        answer: UnaryAnswer = self._unary(function, decode, meter, is_droppable=only_reads(method))
        return answer

    def _unary(
        self, function: Unary, decode: Decode, meter: CallMeter, *, is_droppable: bool
    ) -> Any:
        """Wraps a unary method. This is the hot path: no context manager, no second coroutine."""
        clock, admission, replies_outlive = self.clock, self.admission, self.replies_outlive

        async def call(raw: bytes, context: Context) -> bytes:
            began, code, status = clock(), "OK", None
            meter.begin()
            held = OpenCall(admission, len(raw)) if replies_outlive else None
            if held is None:
                admission.calls += 1
                admission.call_bytes += len(raw)
            try:
                admission.check_room()
                reply = await function(decode(raw), context)
                encoded = reply if isinstance(reply, bytes) else reply.SerializeToString()
                if is_droppable:
                    admission.check_reply(len(encoded))
                if held is not None:
                    held.answer(len(encoded))
            except asyncio.CancelledError:
                code = "CANCELLED"
                if not admission.ending:
                    raise
                status = ENDING_STATUS
            except Exception as error:  # noqa: BLE001  # the last place before gRPC's UNKNOWN
                status = self._status(error, meter)
                code = status.code.name
            else:
                return encoded
            finally:
                meter.end(code, clock() - began)
                if held is None:
                    admission.calls -= 1
                    admission.call_bytes -= len(raw)
            await end_call(context, status)
            return b""

        return call

    def _server_stream(self, function: ServerStream, decode: Decode, meter: CallMeter) -> Any:
        admission = self.admission

        async def replies(raw: bytes, context: Context) -> None:
            async with aclosing(function(decode(raw), context)) as messages:
                async for message in messages:
                    encoded = message if isinstance(message, bytes) else message.SerializeToString()
                    with admission.writing(len(encoded)):
                        await context.write(encoded)

        async def call(raw: bytes, context: Context) -> None:
            await self._long_call(replies(raw, context), context, meter)

        return call

    def _bidi(self, serve: ServeBidi, meter: CallMeter) -> Any:
        async def call(_requests: object, context: Context) -> None:
            await self._long_call(serve(context), context, meter)

        return call

    async def _long_call(self, work: Awaitable[None], context: Context, meter: CallMeter) -> None:
        began, code, status = self.clock(), "OK", None
        meter.begin()
        try:
            await work
        except asyncio.CancelledError:
            code = "CANCELLED"
            if not self.admission.ending:
                raise
            status = ENDING_STATUS
        except (aio.UsageError, aio.InternalError):
            # The call had ended just before a write, and its caller is gone. If the handler
            # returned, grpc.aio would send a status, with the headers again where it was the first
            # write, and log a stack (TOO_MANY_OPERATIONS).
            code = "CANCELLED"
            raise asyncio.CancelledError from None
        except Exception as error:  # noqa: BLE001  # the last place before gRPC's UNKNOWN
            status = self._status(error, meter)
            code = status.code.name
        finally:
            meter.end(code, self.clock() - began)
        if status is not None:
            await end_call(context, status)

    def _status(self, error: Exception, meter: CallMeter) -> Status:
        """Returns the status for an exception; logs it if it is a bug."""
        if isinstance(error, Refused):
            return status_of(error)
        if isinstance(error, Malformed):
            return malformed_status()
        if isinstance(error, StatusError):
            return error.status
        self.incidents += 1
        incident = f"{self.name}-{self.incidents}"
        LOG.error("bug", incident=incident, method=meter.method, exc_info=error)
        return bug_status(incident)


def _serving(function: Bidi, decode: Decode) -> ServeBidi:
    return lambda context: function(Frames(context, decode))


def _as_it_is(raw: bytes) -> bytes:
    """Decodes nothing: what asks who calls decodes after that."""
    return raw


def only_reads(method: MethodDescriptor) -> bool:
    """Returns whether a method changes nothing, so that its reply may be dropped."""
    return method.name.startswith(("Get", "List", "Explain", "Check", "Preview"))


async def end_call(context: Context, status: Status) -> None:
    """Ends a call with a status; the handler must return then. Call it outside of any `except`.

    grpc.aio and the exception that `abort` raises hold each other. With its traceback the exception
    would also hold the handler's frames, and the request in them, until the next garbage
    collection.
    """
    try:
        await context.abort(status.code, status.message, status.metadata)
    except aio.AbortError as ended:
        ended.__traceback__ = None
