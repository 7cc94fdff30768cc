"""The worker at its edges: handlers that misbehave, batches that are cut, jobs that are gone."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from queue import SimpleQueue

import pytest

from jobline import CancelReason, Client, Context, Middleware, Worker, job
from jobline.v1 import job_service_pb2 as pb
from tests.client.live.either import in_thread
from tests.client.live.tiny_store import CANCELLED, COMPLETED, DEAD, READY
from tests.client.live.working import working

VARIABLE = contextvars.ContextVar("VARIABLE", default="nobody's")
INTERRUPTED = pb.RELEASE_REASON_INTERRUPTED


class Odd(BaseException):
    """Neither an Exception nor the end of the program."""


class Unspeakable(Exception):
    """An error whose text cannot be read."""

    def __str__(self):
        raise ValueError


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize(
    "error", [Odd("odd"), Unspeakable(), OSError("\udcff.txt"), GeneratorExit()]
)
async def test_a_job_can_fail_with_anything(tiny, is_async, error, caplog):
    """And its runner goes on."""
    # What is logged here is no UTF-8, which pytest-xdist cannot carry to its report.
    caplog.set_level(logging.CRITICAL, logger="jobline.worker.jobs")
    worker = Worker(tiny.address, concurrency=1)

    def handle(payload):
        if payload == b"bad":
            raise error

    async def handle_async(payload):
        handle(payload)

    worker.handler("q", payload=bytes)(handle_async if is_async else handle)
    bad, good = tiny.push("q", b"bad", b"good", max_attempts=1)
    async with working(worker):
        await tiny.until(lambda: tiny.store.jobs[good].has_ended and tiny.store.jobs[bad].has_ended)
    assert tiny.store.jobs[bad].state == DEAD
    assert tiny.store.jobs[bad].error.type == type(error).__qualname__
    assert tiny.store.jobs[good].state == COMPLETED


@pytest.mark.parametrize("is_async", [True, False])
async def test_the_stack_of_a_failure_begins_with_the_handler(tiny, is_async):
    """How it was called is no news to whoever wrote it."""
    worker = Worker(tiny.address, middleware=[Middleware()])

    def fail(payload):
        raise ValueError("no")

    async def handle_async(payload):
        await asyncio.sleep(0)
        fail(payload)

    def handle(payload):
        fail(payload)

    worker.handler("q")(handle_async if is_async else handle)
    tiny.push("q", b"", max_attempts=1)
    async with working(worker):
        await tiny.until(lambda: tiny.jobs(DEAD))
    frames = [line for line in tiny.jobs()[0].error.stack.splitlines() if line.startswith("  File")]
    assert [line.rpartition(" in ")[2] for line in frames] == [
        "handle_async" if is_async else "handle",
        "fail",
    ]


async def test_a_handler_that_cancels_itself_fails(tiny):
    """Nobody asked for it."""
    worker = Worker(tiny.address)

    @worker.handler("q")
    async def handle(payload):
        raise asyncio.CancelledError

    tiny.push("q", b"", max_attempts=1)
    async with working(worker):
        await tiny.until(lambda: tiny.jobs(DEAD))
    assert tiny.jobs()[0].error.type == "CancelledError"


async def test_a_handler_that_survives_its_cancellation_is_believed(tiny):
    """Its result counts, and the next job of the same runner is not cancelled."""
    worker = Worker(tiny.address, concurrency=1)
    started = asyncio.Event()

    @worker.handler("q", payload=bytes)
    async def handle(payload):
        if payload == b"first":
            started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return b"anyway"
        await asyncio.sleep(0)
        return b"normal"

    first, second = tiny.push("q", b"first", b"second")
    async with working(worker):
        await started.wait()
        tiny.store.jobs[first].cancel_requested = True
        tiny.ports[0].revoke(tiny.store.jobs[first], pb.REVOKE_REASON_CANCELLED)
        await tiny.until(lambda: tiny.store.jobs[second].has_ended)
    assert (tiny.store.jobs[first].state, tiny.store.jobs[first].result) == (CANCELLED, b"anyway")
    assert tiny.store.jobs[second].result == b"normal"


async def test_a_job_that_is_cancelled_before_it_starts_never_starts(tiny):
    """It is settled at once."""
    worker = Worker(tiny.address, concurrency=1, window=2)
    started, go, ran = asyncio.Event(), asyncio.Event(), []

    @worker.handler("q", payload=bytes)
    async def handle(payload):
        ran.append(payload)
        started.set()
        await go.wait()

    _, second = tiny.push("q", b"1", b"2")
    async with working(worker):
        await started.wait()
        entry = tiny.store.jobs[second]
        await tiny.until(lambda: entry.delivery)
        entry.cancel_requested = True
        tiny.ports[0].revoke(entry, pb.REVOKE_REASON_CANCELLED)
        await tiny.until(lambda: entry.state == CANCELLED)
        go.set()
        await tiny.until(lambda: tiny.jobs(COMPLETED))
    assert ran == [b"1"]


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_batch_goes_on_without_a_job_that_is_lost_and_stops_with_its_worker(tiny, is_async):
    """One job's end is its context's; the end of the worker is everybody's."""
    worker = Worker(tiny.address, soft_stop=0.01)
    begun: SimpleQueue[Context] = SimpleQueue()
    reasons: list[CancelReason] = []

    def note(items):
        reasons.extend(item.context.cancel_reason for item in items)

    def handle(items):
        begun.put(items[0].context)
        items[1].context.wait_cancelled(20)
        note(items)
        raise RuntimeError("stopped")

    async def handle_async(items):
        begun.put(items[0].context)
        try:
            await asyncio.Event().wait()
        finally:
            note(items)

    worker.batch_handler("q", size=2, wait=3_600)(handle_async if is_async else handle)
    first, second = tiny.push("q", b"1", b"2")
    async with working(worker) as serving:
        lost = await in_thread(begun.get)
        tiny.ports[0].revoke(tiny.store.jobs[first], pb.REVOKE_REASON_QUEUE_DELETED)
        await in_thread(lost.wait_cancelled)
        worker.stop()
        await serving
    assert reasons == [CancelReason.QUEUE_DELETED, CancelReason.STOPPING]
    assert tiny.store.jobs[second].state == READY


async def test_a_payload_that_cannot_be_read_fails_alone_in_its_batch(tiny):
    """And a batch without any readable one is not run."""
    worker = Worker(tiny.address)
    sizes = []

    @worker.batch_handler("q", size=2, wait=0, payload=int)
    async def handle(items):
        sizes.append(len(items))
        return [None] * len(items)

    tiny.push("q", b"1", b"x", max_attempts=1)
    tiny.push("q", b"x", b"x", max_attempts=1)
    async with working(worker):
        await tiny.until(lambda: all(entry.has_ended for entry in tiny.jobs()))
    assert [entry.state for entry in tiny.jobs()] == [COMPLETED, DEAD, DEAD, DEAD]
    assert sum(sizes) == 1


async def test_middleware_that_overrides_nothing_changes_nothing(tiny):
    """Each method passes through by default."""
    worker = Worker(tiny.address, middleware=[Middleware()])

    @worker.handler("q", "async", payload=bytes)
    async def handle(payload):
        return payload

    @worker.handler("q", "plain", payload=bytes)
    def handle_plain(payload):
        return payload

    ids = [tiny.push("q", name.encode(), name=name)[0] for name in ("async", "plain")]
    async with working(worker):
        await tiny.until(lambda: len(tiny.jobs(COMPLETED)) == 2)
    assert [tiny.store.jobs[id_].result for id_ in ids] == [b"async", b"plain"]


async def test_a_worker_says_who_it_is_and_how_long_its_leases_are(tiny):
    """Everything operators want to see."""
    worker = Worker(
        tiny.address,
        id="me",
        version="1.2",
        labels={"zone": "a"},
        lease=90,
        queues={"a": 1, "b": 3},
        window=5,
    )
    worker.handler("a", "x")(print)
    worker.handler("b")(print)
    async with working(worker):
        opening = tiny.ports[0].frames[0].open
    assert (opening.worker.id, opening.worker.version) == ("me", "1.2")
    assert dict(opening.worker.labels) == {"zone": "a"}
    assert opening.worker.language.startswith("python/")
    assert opening.lease.seconds == 90
    assert [(entry.queue, entry.weight) for entry in opening.queues] == [("a", 1), ("b", 3)]
    assert [(entry.queue, entry.name) for entry in opening.handlers] == [("a", "x"), ("b", "")]


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("size", [0, 1])
async def test_what_a_handler_sets_of_context_variables_is_gone_with_it(tiny, is_async, size):
    """The next job of the same thread or task does not see it, nor does a batch."""
    worker = Worker(tiny.address, concurrency=1)
    seen = []

    def handle(_payload):
        seen.append(VARIABLE.get())
        VARIABLE.set("mine")
        return [None] if size else None

    async def handle_async(payload):
        return handle(payload)

    function = handle_async if is_async else handle
    (worker.batch_handler("q", size=size) if size else worker.handler("q"))(function)
    tiny.push("q", b"1", b"2")
    async with working(worker):
        await tiny.until(lambda: len(tiny.jobs(COMPLETED)) == 2)
    assert seen == ["nobody's"] * 2


async def test_handlers_may_push(tiny):
    """With a client of their own, blocking or not, while the worker's stream is open."""

    @job(queue="second")
    def second(n: int) -> int:
        return n + 1

    worker = Worker(tiny.address, [second])
    with Client(tiny.address) as client:

        @worker.handler("first")
        def first(payload):
            return second.push_and_wait(client, 1)

        (id_,) = tiny.push("first", b"")
        async with working(worker):
            await tiny.until(lambda: tiny.store.jobs[id_].has_ended)
    assert tiny.store.jobs[id_].result == b"2"
