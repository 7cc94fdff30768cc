"""Tracing: spans of pushes and of handlers, and how they hang together."""

from __future__ import annotations

import pickle
from typing import Any

import grpc
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from jobline import AsyncClient, Client, Dead, Snooze, Worker
from jobline.errors import JoblineError
from jobline.otel import TracePushes, TraceWork
from tests.client.live.either import in_thread
from tests.client.live.tiny_store import COMPLETED, DEAD, SCHEDULED
from tests.client.live.working import working


class Traces:
    """What was traced: `spans` by their names."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def named(self, name: str) -> list[Any]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]


@pytest.fixture
def traces() -> Traces:
    return Traces()


def client_of(tiny, traces: Traces) -> AsyncClient:
    return AsyncClient(tiny.address, middleware=[TracePushes(tracer_provider=traces.provider)])


def worker_of(tiny, traces: Traces, **how: Any) -> Worker:
    return Worker(tiny.address, middleware=[TraceWork(tracer_provider=traces.provider, **how)])


async def test_a_handlers_span_links_to_the_push(tiny, traces):
    """One span for a call that pushes many; each is a trace of its own."""
    worker = worker_of(tiny, traces)
    inner = []

    @worker.handler("q")
    async def handle(payload):
        inner.append(trace.get_current_span().get_span_context().span_id)

    async with client_of(tiny, traces) as client, working(worker):
        with traces.provider.get_tracer("test").start_as_current_span("request"):
            await client.push_many("q", [1, 2])
        await tiny.until(lambda: len(tiny.jobs(COMPLETED)) == 2)
    (push,), (request,) = traces.named("push q"), traces.named("request")
    processed = traces.named("process q")
    assert (push.kind, push.parent.span_id) == (SpanKind.PRODUCER, request.context.span_id)
    assert push.attributes == {
        "messaging.system": "jobline",
        "messaging.destination.name": "q",
        "messaging.operation.name": "push",
        "messaging.operation.type": "send",
        "messaging.batch.message_count": 2,
    }
    assert [span.kind for span in processed] == [SpanKind.CONSUMER] * 2
    assert all(span.parent is None for span in processed)
    assert [[link.context.span_id for link in span.links] for span in processed] == [
        [push.context.span_id]
    ] * 2
    assert sorted(inner) == sorted(span.context.span_id for span in processed)
    assert processed[0].attributes["messaging.message.id"] == "1"


@pytest.mark.parametrize("is_async", [True, False])
async def test_it_may_be_its_child_instead(tiny, traces, is_async):
    worker = worker_of(tiny, traces, child=True)

    async def handle(payload):
        return None

    def handle_plain(payload):
        return None

    worker.handler("q")(handle if is_async else handle_plain)
    async with client_of(tiny, traces) as client, working(worker):
        await client.push("q", 1)
        await tiny.until(lambda: tiny.jobs(COMPLETED))
    (push,), (process,) = traces.named("push q"), traces.named("process q")
    assert process.parent.span_id == push.context.span_id
    assert process.context.trace_id == push.context.trace_id
    assert process.links == ()


async def test_a_batch_links_to_all_of_its_pushes(tiny, traces):
    worker = worker_of(tiny, traces, child=True)

    @worker.batch_handler("q", size=2, wait=20)
    async def handle(items):
        return [None] * len(items)

    async with client_of(tiny, traces) as client, working(worker):
        await client.push("q", 1)
        await client.push("q", 2)
        await tiny.until(lambda: len(tiny.jobs(COMPLETED)) == 2)
    (process,) = traces.named("process q")
    pushes = {span.context.span_id for span in traces.named("push q")}
    assert {link.context.span_id for link in process.links} == pushes
    assert process.attributes["messaging.batch.message_count"] == 2


async def test_errors_are_recorded_and_a_snooze_is_none(tiny, traces):
    worker = worker_of(tiny, traces)

    @worker.handler("q", payload=bytes)
    async def handle(payload):
        if payload == b"snooze":
            raise Snooze(5)
        if payload == b"dead":
            return Dead("for good")
        raise ValueError("no luck")

    tiny.push("q", b"snooze", b"dead")
    tiny.push("q", b"error", max_attempts=1)
    async with working(worker):
        await tiny.until(lambda: len(tiny.jobs(DEAD)) == 2 and tiny.jobs(SCHEDULED))
    told = {span.status.description for span in traces.named("process q")}
    assert told == {None, "Dead: for good", "ValueError: no luck"}
    (failed,) = [
        span for span in traces.named("process q") if "Value" in str(span.status.description)
    ]
    assert failed.status.status_code is StatusCode.ERROR
    assert failed.events[0].name == "exception"


async def test_a_push_that_is_refused_is_an_error(tiny, traces):
    def push() -> None:
        with Client(tiny.address, middleware=[TracePushes(tracer_provider=traces.provider)]) as one:
            one.push("q", 1)

    tiny.refuse("Push", grpc.StatusCode.INVALID_ARGUMENT)
    with pytest.raises(JoblineError):
        await in_thread(push)
    (push_span,) = traces.named("push q")
    assert push_span.status.status_code is StatusCode.ERROR


async def test_without_an_sdk_nothing_is_added(tiny):
    """Nor is anything asked of jobs whose headers cannot be read."""
    worker = Worker(tiny.address, middleware=[TraceWork()])
    worker.handler("q")(print)
    async with AsyncClient(tiny.address, middleware=[TracePushes()]) as client, working(worker):
        await client.push("q", 1)
        await client.push("q", 2, headers={"traceparent": "nonsense"})
        await tiny.until(lambda: len(tiny.jobs(COMPLETED)) == 2)
    assert [dict(job.options.headers) for job in tiny.jobs()] == [{}, {"traceparent": "nonsense"}]


def test_both_can_go_to_other_processes():
    assert pickle.loads(pickle.dumps(TraceWork(child=True)))._child is True
