"""Tracing with OpenTelemetry: a span for each call that pushes, one for each call of a handler.

    client = Client(middleware=[TracePushes()])
    worker = Worker(middleware=[TraceWork()])

Trace context travels in the headers `traceparent` and `tracestate` of jobs, and as metadata of
calls, so that a server that traces goes on with it. The span of a handler *links*
to that of the push, or is its child if asked. It needs `pip install 'jobline[otel]'`, which is the
API alone; without an SDK that is set up nothing is recorded, and nothing is sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context as TraceContext
from opentelemetry.trace import Link, Span, SpanKind, StatusCode, Tracer, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from jobline import _trace_metadata
from jobline._context import Context
from jobline._outcomes import Dead, Outcome, Retry
from jobline._push.push_middleware import Outgoing, PushMiddleware
from jobline._values import Pushed, message_of
from jobline._version import __version__
from jobline._worker.middleware import Middleware

__all__ = ["TracePushes", "TraceWork"]

_PROPAGATOR = TraceContextTextMapPropagator()
_TRACEPARENT = "traceparent"


class _Tracing:
    """`tracer_provider`: default, the program's own (`opentelemetry.trace.set_tracer_provider`)."""

    def __init__(self, *, tracer_provider: TracerProvider | None = None) -> None:
        self._provider = tracer_provider
        _trace_metadata.use(_current)

    @property
    def _tracer(self) -> Tracer:
        return trace.get_tracer("jobline", __version__, self._provider)

    @contextmanager
    def _span(
        self, operation: str, kind: SpanKind, queue: str, count: int, **more: Any
    ) -> Iterator[Span]:
        attributes: dict[str, Any] = {
            "messaging.system": "jobline",
            "messaging.destination.name": queue,
            "messaging.operation.name": operation,
            "messaging.operation.type": "send" if kind is SpanKind.PRODUCER else "process",
            **more.pop("attributes", {}),
        }
        if count != 1:
            attributes["messaging.batch.message_count"] = count
        with self._tracer.start_as_current_span(
            f"{operation} {queue}",
            kind=kind,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
            **more,
        ) as span:
            try:
                yield span
            except BaseException as error:
                _note(span, error)
                raise


class TracePushes(_Tracing, PushMiddleware):
    """Makes a span `push <queue>` around each call that pushes, and gives all of its jobs the trace
    context, in the place of one that they have.
    """

    async def around(
        self,
        jobs: Sequence[Outgoing],
        call_next: Callable[[Sequence[Outgoing]], Awaitable[list[Pushed]]],
    ) -> list[Pushed]:
        """Traces the calls of an `AsyncClient`."""
        with self._span("push", SpanKind.PRODUCER, jobs[0].queue, len(jobs)) as span:
            return await call_next(_with_context(jobs, span))

    def around_plain(
        self, jobs: Sequence[Outgoing], call_next: Callable[[Sequence[Outgoing]], list[Pushed]]
    ) -> list[Pushed]:
        """Traces the calls of a `Client`."""
        with self._span("push", SpanKind.PRODUCER, jobs[0].queue, len(jobs)) as span:
            return call_next(_with_context(jobs, span))


class TraceWork(_Tracing, Middleware):
    """Makes a span `process <queue>` around each call of a handler, with links to the spans of the
    pushes of its jobs. `child`: the span of a handler of one job is a child of the push's instead,
    in the same trace. What a handler raises is recorded; retries and dead jobs are errors, too.
    """

    def __init__(
        self, *, child: bool = False, tracer_provider: TracerProvider | None = None
    ) -> None:
        super().__init__(tracer_provider=tracer_provider)
        self._child = child

    async def around(
        self, contexts: Sequence[Context], call_next: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Traces async handlers."""
        with self._process(contexts) as span:
            return _noted(span, await call_next())

    def around_plain(self, contexts: Sequence[Context], call_next: Callable[[], Any]) -> Any:
        """Traces plain handlers."""
        with self._process(contexts) as span:
            return _noted(span, call_next())

    @contextmanager
    def _process(self, contexts: Sequence[Context]) -> Iterator[Span]:
        first, count = contexts[0], len(contexts)
        attributes: dict[str, Any] = {}
        if count == 1:
            attributes["messaging.message.id"] = str(first.id)
        pushed = [found for each in contexts if (found := _context_in(each.headers)) is not None]
        more: dict[str, Any] = {}
        if self._child and count == 1 and pushed:
            more["context"] = pushed[0]
        else:
            spans = (trace.get_current_span(each).get_span_context() for each in pushed)
            more["links"] = [Link(span) for span in spans]
        with self._span(
            "process", SpanKind.CONSUMER, first.queue, count, attributes=attributes, **more
        ) as span:
            yield span


def _current() -> list[tuple[str, str]]:
    """Returns the context of the span that is open, as metadata of a call."""
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier)
    return [*carrier.items()]


def _with_context(jobs: Sequence[Outgoing], span: Span) -> Sequence[Outgoing]:
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier, trace.set_span_in_context(span))
    return [job.with_headers(carrier) for job in jobs] if carrier else jobs


def _context_in(headers: Mapping[str, str]) -> TraceContext | None:
    """Returns the trace context of a push; None without one that can be read."""
    if _TRACEPARENT not in headers:
        return None
    found = _PROPAGATOR.extract(headers)
    return found if trace.get_current_span(found).get_span_context().is_valid else None


def _noted(span: Span, value: Any) -> Any:
    """Notes an outcome that a handler has returned."""
    if isinstance(value, BaseException):
        _note(span, value)
    return value


def _note(span: Span, error: BaseException) -> None:
    """Records what went wrong; to snooze, to wait or to be cancelled is not wrong."""
    if isinstance(error, Outcome) and not isinstance(error, (Dead, Retry)):
        return
    if not isinstance(error, Exception):
        return
    span.record_exception(error)
    span.set_status(StatusCode.ERROR, f"{type(error).__name__}: {message_of(error)}")
