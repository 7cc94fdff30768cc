"""Sends spans by OTLP. Only a server with `tracing = otlp` loads it, with OpenTelemetry's SDK.

Where they go, and what is sampled, say OpenTelemetry's own variables
(`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_…`). The SDK keeps spans in a
bounded queue and sends them from a thread of its own: a receiver that is down costs spans, which
are counted, and no call waits.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from jobline_server.config import ConfigurationError
from jobline_server.rpc.services import Services
from jobline_server.rpc.tracing import CallTracing
from jobline_server.runtime.daemon_thread import DaemonThread
from jobline_server.telemetry.log import logger

LOG = logger("app")
NAME = "jobline"
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
# For the last spans, at a stop.
FLUSH_SECONDS = 3.0


class CountedSpans(BatchSpanProcessor):
    """Passes spans on, and counts those that ended."""

    def __init__(self, exporter: CountedExports) -> None:
        super().__init__(exporter)
        self.ended = 0

    def on_end(self, span: ReadableSpan) -> None:
        """Counts a span that is to be exported."""
        if span.context is not None and span.context.trace_flags.sampled:
            self.ended += 1
        super().on_end(span)


class CountedExports(SpanExporter):
    """An exporter whose successes and failures are counted, in spans; its thread alone counts."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self.sent = 0
        self.failed = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Sends spans."""
        try:
            result = self._exporter.export(spans)
        except Exception:
            self.failed += len(spans)
            raise
        if result is SpanExportResult.SUCCESS:
            self.sent += len(spans)
        else:
            self.failed += len(spans)
        return result

    def shutdown(self) -> None:
        """Ends it."""
        self._exporter.shutdown()


class Tracing:
    """The way of spans from calls to where they are kept."""

    def __init__(self, exporter: SpanExporter, version: str) -> None:
        self._exports = CountedExports(exporter)
        self._spans = CountedSpans(self._exports)
        self._provider = TracerProvider(resource=_resource(version), shutdown_on_exit=False)
        self._provider.add_span_processor(self._spans)
        self._thread = DaemonThread("jobline-tracing")
        self.calls = CallTracing(self._provider.get_tracer(NAME, version))

    @property
    def ended(self) -> int:
        """Returns how many spans there were since the start that are sampled."""
        return self._spans.ended

    @property
    def sent(self) -> int:
        """Returns how many of them were sent."""
        return self._exports.sent

    @property
    def failed(self) -> int:
        """Returns how many of them could not be sent."""
        return self._exports.failed

    def around(self, services: Services) -> Services:
        """Returns the services with a span around each call."""
        return replace(services, handlers=self.calls.around(services.handlers, services.methods))

    async def stop(self) -> None:
        """Sends what is left, for a few seconds at most."""
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                await self._thread.run(self._provider.shutdown)
        except TimeoutError:
            LOG.warning("the last spans were not sent", seconds=FLUSH_SECONDS)
        self._thread.stop()


def make_tracing(version: str) -> Tracing:
    """Returns what sends spans by OTLP over gRPC. Raises `ConfigurationError` if another protocol
    is asked for.
    """
    for name in PROTOCOLS:
        if os.environ.get(name, "grpc") != "grpc":
            raise ConfigurationError(f"tracing: {name}={os.environ[name]}: only grpc is served")
    return Tracing(OTLPSpanExporter(), version)


def _resource(version: str) -> Resource:
    """Returns what the server is called; OpenTelemetry's variables go before it."""
    found = Resource.create()
    is_named = not str(found.attributes[SERVICE_NAME]).startswith("unknown_service")
    ours = {SERVICE_VERSION: version} | ({} if is_named else {SERVICE_NAME: NAME})
    return found.merge(Resource(ours))
