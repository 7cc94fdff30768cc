"""A span for each call, as a child of the caller's: wraps handlers, where tracing is on.

It is a wrapper like the guard's, around the guard, and made only for a server that traces: others
have not a line of it on the way of a call. There is one span per call and none per job; the trace
of a job goes on in its headers, from the push to the worker, and the server does not read them.
Names are those of OpenTelemetry's semantic conventions 1.44 for RPC and messaging.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, use_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from jobline_server.rpc.guard import Handler

TRACED = "jobline.v1."
PARENT = ("traceparent", "tracestate")
NO_CONTEXT = Context()
# Requests up to this size are read a second time for the queue that they are for.
READ_BYTES_MAX = 64 << 10
# What methods do with jobs, and the fields of a request that count those.
OPERATIONS = {
    "Push": ("send", ("payloads", "jobs")),
    "PushFlow": ("send", ("jobs",)),
    "Pull": ("receive", ()),
    "Ack": ("settle", ("ids", "items")),
    "Fail": ("settle", ("items",)),
    "Release": ("settle", ("items",)),
    "Extend": ("settle", ("items",)),
}
# Codes by which a server says that it failed; the others are the caller's.
FAULTS = frozenset(
    {"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}
)


class _SeenContext:
    """The context of a call; it notes by which status the call was ended."""

    __slots__ = ("_context", "code")

    def __init__(self, context: Any) -> None:
        self._context = context
        self.code = "OK"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    async def abort(
        self,
        code: grpc.StatusCode,
        details: str = "",
        trailing_metadata: Sequence[tuple[str, Any]] = (),
    ) -> NoReturn:
        """Ends the call with a status."""
        self.code = code.name
        await self._context.abort(code, details, trailing_metadata)
        raise AssertionError("abort returns to nobody")


class CallTracing:
    """Wraps handlers. Spans go to `tracer`."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._propagator = TraceContextTextMapPropagator()

    def around(
        self, handlers: Mapping[str, Handler], methods: Mapping[str, MethodDescriptor]
    ) -> dict[str, Handler]:
        """Returns the handlers, those of Jobline's own services wrapped; by path."""
        return {
            path: self._traced(methods[path], handler)
            if path.startswith(f"/{TRACED}") and path in methods
            else handler
            for path, handler in handlers.items()
        }

    def _traced(self, method: MethodDescriptor, handler: Handler) -> Handler:
        if handler.request_streaming:
            serve = self._around(method, handler.stream_stream)
            return grpc.stream_stream_rpc_method_handler(serve)
        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(self._around(method, handler.unary_stream))
        return grpc.unary_unary_rpc_method_handler(self._around(method, handler.unary_unary))

    def _around(self, method: MethodDescriptor, serve: Any) -> Any:
        name = f"{method.containing_service.full_name}/{method.name}"
        attributes = _attributes_of(method, name)

        async def call(request: Any, context: Any) -> Any:
            carrier = _carrier(context)
            parent = self._propagator.extract(carrier, NO_CONTEXT) if carrier else NO_CONTEXT
            span = self._tracer.start_span(
                name, context=parent, kind=SpanKind.SERVER, attributes=attributes
            )
            if not span.is_recording():  # most are not sampled: nothing of it is worth its time
                return await serve(request, context)
            if isinstance(request, bytes):
                _note_request(span, method, request)
            seen = _SeenContext(context)
            try:
                with use_span(span, record_exception=False, set_status_on_exception=False):
                    return await serve(request, seen)
            except asyncio.CancelledError:
                seen.code = "CANCELLED"
                raise
            finally:
                _end(span, seen.code)

        return call


def _attributes_of(method: MethodDescriptor, name: str) -> dict[str, str]:
    attributes = {"rpc.system.name": "grpc", "rpc.method": name}
    if method.name in OPERATIONS:
        attributes["messaging.system"] = "jobline"
        attributes["messaging.operation.name"] = method.name.lower()
        attributes["messaging.operation.type"] = OPERATIONS[method.name][0]
    return attributes


def _carrier(context: Any) -> dict[str, str]:
    """Returns the trace context of a call; empty where its door passes on no metadata."""
    read = getattr(context, "invocation_metadata", None)
    metadata = () if read is None else read() or ()
    return {key: value for key, value in metadata if key in PARENT and isinstance(value, str)}


def _note_request(span: Span, method: MethodDescriptor, raw: bytes) -> None:
    """Notes the queue of a request, and how many jobs it is about."""
    if len(raw) > READ_BYTES_MAX or "queue" not in method.input_type.fields_by_name:
        return
    try:
        request: Any = GetMessageClass(method.input_type).FromString(raw)
    except DecodeError:
        return
    if isinstance(request.queue, str) and len(request.queue) <= 256:
        span.set_attribute("messaging.destination.name", request.queue)
    _, lists = OPERATIONS.get(method.name, ("", ()))
    if count := sum(len(getattr(request, name)) for name in lists):
        span.set_attribute("messaging.batch.message_count", count)


def _end(span: Span, code: str) -> None:
    span.set_attribute("rpc.response.status_code", code)
    if code != "OK":
        span.set_attribute("error.type", code)
    if code in FAULTS:
        span.set_status(StatusCode.ERROR)
    span.end()
