"""Calls that are not sampled cost a server that traces as little as can be."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from jobline.v1 import job_service_pb2 as pb
from jobline_server.rpc.tracing import CallTracing

PUSH = pb.DESCRIPTOR.services_by_name["JobService"].methods_by_name["Push"]
PATH = "/jobline.v1.JobService/Push"
TRACE = f"00-{'7' * 32}-{'5' * 16}"


class Call:
    """The context of a call with this metadata."""

    def __init__(self, *metadata: tuple[str, str]) -> None:
        self._metadata = metadata

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return self._metadata


async def contexts_of(call: Call, share: float) -> tuple[Any, int]:
    """Serves a call; returns the context that its handler got, and how many spans there were."""
    got: list[Any] = []

    async def serve(_request: bytes, context: Any) -> bytes:
        got.append(context)
        return b""

    kept = InMemorySpanExporter()
    provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(share)))
    provider.add_span_processor(SimpleSpanProcessor(kept))
    handlers: dict[str, Any] = {PATH: grpc.unary_unary_rpc_method_handler(serve)}
    tracing = CallTracing(provider.get_tracer("tests"))
    handler: Any = tracing.around(handlers, {PATH: PUSH})[PATH]
    await handler.unary_unary(b"", call)
    return got[0], len(kept.get_finished_spans())


@pytest.mark.parametrize(
    ("call", "share"),
    [(Call(), 0.0), (Call(("traceparent", f"{TRACE}-00")), 1.0)],
    ids=["by chance", "by its caller"],
)
async def test_the_handler_of_a_call_without_a_span_gets_its_own_context(
    call: Call, share: float
) -> None:
    """Nothing is wrapped around it, and nothing noted."""
    assert await contexts_of(call, share) == (call, 0)


@pytest.mark.parametrize(
    ("call", "share"),
    [(Call(), 1.0), (Call(("traceparent", f"{TRACE}-01")), 0.0)],
    ids=["by chance", "by its caller"],
)
async def test_a_call_that_is_sampled_has_a_span(call: Call, share: float) -> None:
    """The caller's choice goes before chance."""
    context, spans = await contexts_of(call, share)
    assert spans == 1
    assert context is not call
