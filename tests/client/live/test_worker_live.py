"""The worker over a real socket: handlers, outcomes, contexts."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass

import pytest

from jobline import (
    ANY,
    AsyncClient,
    Cancel,
    CancelReason,
    Client,
    Context,
    Dead,
    InvalidArgument,
    JobError,
    LeasedJob,
    Retry,
    Snooze,
    Worker,
    job,
)
from jobline.v1 import job_service_pb2 as pb
from tests.client.live.either import in_thread
from tests.client.live.tiny_store import CANCELLED, COMPLETED, DEAD, READY, SCHEDULED
from tests.client.live.working import Silent, working


def because(outcome, cause):
    """As `raise outcome from cause` leaves it."""
    outcome.__cause__ = cause
    return outcome


SILENT = Silent()


@dataclass
class Resize:
    width: int


@dataclass
class Resized:
    pixels: int


@job(queue="images", max_attempts=7)
async def resize(request: Resize, context: Context) -> Resized:
    """Declared once: producers and workers share it."""
    return Resized(pixels=request.width * context.attempt)


@job(queue="images", name="shrink")
def shrink(request: Resize) -> int:
    """A plain function runs in a thread."""
    assert threading.current_thread().name.startswith("jobline-runner")
    return request.width // 2


async def test_declared_jobs_are_pushed_run_and_answered_by_type(tiny):
    """Types go in and come out, on both clients; options come from the declaration."""
    worker = Worker(tiny.address, [resize, shrink])
    async with AsyncClient(tiny.address) as client, working(worker):
        assert await resize.push_and_wait(client, Resize(4)) == Resized(4)
        assert await shrink.push_and_wait(client, Resize(4)) == 2
        pushed = await resize.push(client, Resize(1), name="resize")
        assert tiny.store.jobs[pushed.id].options.max_attempts == 7
        assert len(await resize.push_many(client, [Resize(1), Resize(2)])) == 2
        with Client(tiny.address) as blocking:
            assert await in_thread(resize.push_and_wait, blocking, Resize(5)) == Resized(5)
            assert len(await in_thread(shrink.push_many, blocking, [Resize(6)])) == 1
        await tiny.until(lambda: len(tiny.jobs(COMPLETED)) == 7)
    assert await resize(
        Resize(2), Context(LeasedJob.from_message(tiny.store.jobs[1].leased()), SILENT)
    ) == Resized(2)


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize(
    ("outcome", "state", "error"),
    [
        (lambda: ValueError("bad"), READY, ("ValueError", "bad")),
        (lambda: Retry(60, error="later"), SCHEDULED, ("", "later")),
        (lambda: Retry(60, error=JobError("Mine", "said")), SCHEDULED, ("Mine", "said")),
        (Retry, READY, ("Retry", "the handler asked for a retry")),
        (lambda: Dead("hopeless"), DEAD, ("Dead", "hopeless")),
        (lambda: because(Dead("hopeless"), OSError("gone")), DEAD, ("OSError", "hopeless: gone")),
        (lambda: Cancel("unwanted"), CANCELLED, ("Cancel", "unwanted")),
        (lambda: Snooze(60), SCHEDULED, None),
    ],
)
async def test_outcomes_say_what_becomes_of_a_job(tiny, is_async, outcome, state, error):
    """Raised in async and in plain handlers."""
    worker = Worker(tiny.address, concurrency=1)

    def handle(payload):
        raise outcome()

    async def handle_async(payload):
        raise outcome()

    worker.handler("q")(handle_async if is_async else handle)
    (id_,) = tiny.push("q", b"", max_attempts=9)
    done = tiny.store.jobs[id_]
    async with working(worker):
        await tiny.until(lambda: done.settled)
        if state is READY:  # and handed out again
            await tiny.until(lambda: done.attempt > 2)
    if state is not READY:
        assert done.state == state
    if error is None:
        assert done.releases == [pb.RELEASE_REASON_SNOOZE]
    else:
        assert (done.error.type, done.error.message) == error


async def test_an_outcome_may_be_returned_and_a_failure_has_its_stack(tiny):
    """And what cannot be a result is a failure too."""
    worker = Worker(tiny.address)

    @worker.handler("q", "dead")
    async def dead(payload):
        return Dead("returned")

    @worker.handler("q", "unjson", payload=bytes)
    async def unjson(payload):
        return object()

    @worker.handler("q", "typed", payload=Resize)
    def typed(payload):
        return None

    ids = [
        tiny.push("q", b"[]", name=name, max_attempts=1)[0] for name in ("dead", "unjson", "typed")
    ]
    async with working(worker):
        await tiny.until(lambda: len(tiny.jobs(DEAD)) == 3)
    assert [tiny.store.jobs[id_].error.type for id_ in ids] == ["Dead", "CodecError", "CodecError"]
    assert "settle_value" in tiny.store.jobs[ids[1]].error.stack
    assert worker.stats.failed == 3


async def test_progress_and_checkpoints_reach_the_server_before_the_outcome(tiny):
    """The next attempt finds what this one left."""
    worker = Worker(tiny.address)

    @worker.handler("q")
    def handle(payload, context):
        if context.checkpoint_value() is None:
            context.progress(50, "half")
            context.save_checkpoint({"at": 5})
            raise RuntimeError
        return context.checkpoint_value()

    (id_,) = tiny.push("q", b"")
    async with working(worker):
        await tiny.until(lambda: tiny.jobs(COMPLETED))
    done = tiny.store.jobs[id_]
    assert (done.progress, done.checkpoint, done.result) == (50, b'{"at":5}', b'{"at":5}')


async def test_a_cancelled_job_stops_its_handler(tiny):
    """An async handler is cancelled, a plain one is told; both are settled as cancelled."""
    worker = Worker(tiny.address)
    started, started_plain = asyncio.Event(), threading.Event()
    stopped = []

    @worker.handler("q", "async")
    async def handle(payload, context):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(context.cancel_reason)

    @worker.handler("q", "plain")
    def handle_plain(payload, context):
        started_plain.set()
        context.wait_cancelled(10)
        stopped.append(context.cancel_reason)
        context.raise_if_cancelled()

    tiny.push("q", b"", name="async")
    tiny.push("q", b"", name="plain")
    async with working(worker):
        await started.wait()
        await in_thread(started_plain.wait)
        for entry in tiny.jobs():
            entry.cancel_requested = True
            tiny.ports[0].revoke(entry, pb.REVOKE_REASON_CANCELLED)
        await tiny.until(lambda: len(tiny.jobs(CANCELLED)) == 2)
        assert worker.stats.running == 0
    assert stopped == [CancelReason.CANCELLED] * 2


async def test_a_lost_lease_stops_its_handler_and_nothing_is_said(tiny):
    """The job is somebody else's; what the handler returns is ignored."""
    worker = Worker(tiny.address, window=1)
    started, stopped = asyncio.Event(), asyncio.Event()

    @worker.handler("q", payload=bytes)
    async def handle(payload, context):
        started.set()
        if context.delivery > 1:
            return b"second"
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.set()
        return b"first"

    (id_,) = tiny.push("q", b"")
    async with working(worker):
        await started.wait()
        entry = tiny.store.jobs[id_]
        tiny.ports[0].revoke(entry, pb.REVOKE_REASON_LEASE_LOST)
        tiny.store.lose(entry)
        await stopped.wait()
        await tiny.until(lambda: tiny.jobs(COMPLETED))
    assert entry.result == b"second"
    assert worker.stats.lost == 1


async def test_any_name_goes_to_the_handler_that_takes_any(tiny):
    """The more specific handler comes first."""
    worker = Worker(tiny.address)

    @worker.handler("q", ANY, payload=bytes)
    async def anything(payload, context):
        return context.name.encode()

    @worker.handler("q", "own", payload=bytes)
    async def own(payload):
        return b"mine"

    ids = [tiny.push("q", b"", name=name)[0] for name in ("a", "", "own")]
    async with working(worker):
        await tiny.until(lambda: len(tiny.jobs(COMPLETED)) == 3)
    assert [tiny.store.jobs[id_].result for id_ in ids] == [b"a", b"", b"mine"]


async def test_a_job_that_nobody_here_handles_is_given_back_for_later(tiny):
    """A server that sends names it was not told of does not get them back at once."""
    worker = Worker(tiny.address)

    @worker.handler("q", "known")
    async def known(payload):
        return None

    async with working(worker):
        (id_,) = tiny.push("q", b"", name="strange")
        entry = tiny.store.lease(["q"], 1, tiny.ports[0].session, [])[0]
        tiny.ports[0].say(pb.StreamResponse(jobs=[entry.leased()]))
        await tiny.until(lambda: tiny.jobs(SCHEDULED))
    assert tiny.store.jobs[id_].releases == [pb.RELEASE_REASON_UNHANDLED]


async def test_a_run_is_worked_off_in_parallel_up_to_the_concurrency(tiny):
    """And no further."""
    worker = Worker(tiny.address, concurrency=3, window=10)
    gate, running, most = asyncio.Event(), 0, 0

    @worker.handler("q")
    async def handle(payload):
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3:
            gate.set()
        await gate.wait()
        running -= 1

    tiny.push("q", *[b""] * 10)
    async with working(worker):
        await tiny.until(lambda: len(tiny.jobs(COMPLETED)) == 10)
    assert most == 3


def test_a_worker_says_at_once_what_it_cannot_do():
    """Before it connects anywhere."""
    with pytest.raises(InvalidArgument, match="concurrency: must be 1 or more"):
        Worker(concurrency=0)
    with pytest.raises(InvalidArgument, match="size: must be 1 or more"):
        Worker().batch_handler("q", size=0)
    with pytest.raises(InvalidArgument, match="at least one handler"):
        asyncio.run(Worker().serve())
    assert Worker().stats.done == 0
