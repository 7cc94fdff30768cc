"""Tracing: a span for each call, as a child of the caller's, sent to a real receiver of OTLP."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from grpc import aio
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from jobline import AsyncClient, Client, Worker
from jobline.otel import TracePushes, TraceWork
from jobline.v1 import admin_service_pb2, job_service_pb2
from jobline.v1.admin_service_pb2_grpc import AdminServiceStub
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.config import ConfigurationError
from jobline_server.testing import RunningServer, running_server
from tests.client.live.working import working
from tests.server.conftest import connect, until
from tests.server.test_pages import fetch, samples


class Receiver(TraceServiceServicer):
    """A receiver of OTLP; `spans` are what it got, `names` those of services."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.names: set[str] = set()
        self.address = ""

    def Export(self, request: Any, context: Any) -> Any:
        for resource in request.resource_spans:
            attributes = resource.resource.attributes
            self.names |= {
                one.value.string_value for one in attributes if one.key == "service.name"
            }
            for scope in resource.scope_spans:
                self.spans += scope.spans
        return trace_service_pb2.ExportTraceServiceResponse()

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """One that listens, and the variables that lead to it."""
    found = Receiver()
    server = grpc.server(ThreadPoolExecutor(2), options=[("grpc.so_reuseport", 0)])
    add_TraceServiceServicer_to_server(found, server)
    found.address = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.address)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    yield found
    server.stop(0).wait()


@pytest.fixture
async def traced(receiver: Receiver, transport: str) -> AsyncIterator[RunningServer]:
    async with running_server(transport=transport, tracing="otlp") as server:
        yield server


def texts(span: Any) -> dict[str, str | int]:
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


class Program:
    """A program that traces, with its spans in memory."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def named(self, name: str) -> list[Any]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]


async def test_push_and_server_are_one_trace_and_the_worker_links_to_it(
    traced: RunningServer, receiver: Receiver
) -> None:
    """From producer to server to worker."""
    program, done = Program(), asyncio.Event()
    worker = Worker(traced.address, middleware=[TraceWork(tracer_provider=program.provider)])

    @worker.handler("mail")
    async def handle(payload: Any) -> None:
        done.set()

    middleware = [TracePushes(tracer_provider=program.provider)]
    async with working(worker), AsyncClient(traced.address, middleware=middleware) as client:
        await client.push("mail", {"to": "a@b.c"})
        await done.wait()
        await until(lambda: bool(program.named("process mail")))
    await until(lambda: bool(receiver.named("jobline.v1.JobService/Push")))

    (push,) = program.named("push mail")
    (process,) = program.named("process mail")
    (served,) = receiver.named("jobline.v1.JobService/Push")
    context = push.get_span_context()
    assert served.trace_id == context.trace_id.to_bytes(16, "big")
    assert served.parent_span_id == context.span_id.to_bytes(8, "big")
    assert served.kind == 2  # SERVER
    assert texts(served) == {
        "rpc.system.name": "grpc",
        "rpc.method": "jobline.v1.JobService/Push",
        "rpc.response.status_code": "OK",
        "messaging.system": "jobline",
        "messaging.operation.name": "push",
        "messaging.operation.type": "send",
        "messaging.destination.name": "mail",
        "messaging.batch.message_count": 1,
    }
    assert [link.context.span_id for link in process.links] == [context.span_id]
    assert push.kind is SpanKind.PRODUCER
    assert receiver.names == {"jobline"}


def test_calls_of_threads_carry_the_span_that_is_open(receiver: Receiver, transport: str) -> None:
    """The blocking client, too; also calls that push nothing."""

    async def served() -> None:
        async with running_server(transport=transport, tracing="otlp") as server:
            await asyncio.to_thread(call, server.address)

    program = Program()

    def call(address: str) -> None:
        middleware = [TracePushes(tracer_provider=program.provider)]
        tracer = program.provider.get_tracer("test")
        with (
            Client(address, middleware=middleware) as client,
            tracer.start_as_current_span("request"),
        ):
            client.push("mail", "x")
            client.queues.get("mail")

    asyncio.run(served())
    (request,) = program.named("request")
    (got,) = receiver.named("jobline.v1.QueueService/GetQueue")
    assert got.parent_span_id == request.get_span_context().span_id.to_bytes(8, "big")
    assert texts(got)["messaging.destination.name"] == "mail"
    (served_push,) = receiver.named("jobline.v1.JobService/Push")
    (push,) = program.named("push mail")
    assert served_push.parent_span_id == push.get_span_context().span_id.to_bytes(8, "big")


async def test_what_fails_says_so(traced: RunningServer, receiver: Receiver) -> None:
    """A caller's mistake is no error of the server."""
    async with connect(traced.address) as channel:
        with pytest.raises(aio.AioRpcError):
            await JobServiceStub(channel).Push(job_service_pb2.PushRequest())
        stream = JobServiceStub(channel).Wait(job_service_pb2.WaitRequest(ids=[1]))
        async for _ in stream:
            pass
    await until(lambda: len(receiver.spans) == 2)

    (push,) = receiver.named("jobline.v1.JobService/Push")
    assert texts(push)["rpc.response.status_code"] == "INVALID_ARGUMENT"
    assert texts(push)["error.type"] == "INVALID_ARGUMENT"
    assert push.status.code == 0
    assert not push.parent_span_id
    (wait,) = receiver.named("jobline.v1.JobService/Wait")
    assert texts(wait)["rpc.response.status_code"] == "OK"


async def test_a_receiver_that_is_down_costs_spans_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are counted; no call waits, and neither does the stop for long."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    async with running_server(tracing="otlp") as server:
        async with connect(server.address) as channel:
            stub = AdminServiceStub(channel)
            for _ in range(100):
                await stub.GetStats(admin_service_pb2.GetStatsRequest())
        tracing = server.server.tracing
        assert tracing is not None
        await until(lambda: tracing.failed > 0)

        found = await samples(server)
        assert found["jobline_spans_total", frozenset()] == 100
        assert found["jobline_spans_sent_total", frozenset()] == 0
        assert found["jobline_spans_failed_total", frozenset()] > 0


async def test_without_tracing_nothing_is_wrapped(transport: str) -> None:
    """The handlers are those of the guard, and metrics say nothing of spans."""
    async with running_server(transport=transport) as server:
        handler: Any = server.server.services.handlers["/jobline.v1.JobService/Push"]
        assert handler.unary_unary.__module__ == "jobline_server.rpc.guard"
        assert server.server.tracing is None
        assert "jobline_spans" not in (await fetch(server, "/metrics")).text


async def test_what_cannot_trace_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather than lose all spans in silence."""
    monkeypatch.setitem(sys.modules, "jobline_server.tracing_port", None)
    with pytest.raises(ConfigurationError, match=r"pip install .* '\.\[otel\]'"):
        async with running_server(tracing="otlp"):
            pass
    monkeypatch.undo()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    with pytest.raises(ConfigurationError, match="only grpc is served"):
        async with running_server(tracing="otlp"):
            pass
