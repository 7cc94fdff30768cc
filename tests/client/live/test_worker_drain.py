"""How a worker stops: finish, then cancel, then release. A polite stop costs no job more than a
kill.
"""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest

from jobline import CancelReason, Worker
from jobline._worker.shared_session import SharedSession
from jobline.v1 import job_service_pb2 as pb
from tests.client.live.either import in_thread
from tests.client.live.tiny_store import ACTIVE, COMPLETED, READY
from tests.client.live.working import holding, working

INTERRUPTED = pb.RELEASE_REASON_INTERRUPTED


def do_nothing(payload):
    return None


async def test_what_runs_may_finish_and_what_waits_is_given_back_at_once(tiny):
    """Others can have it; nothing is lost, repeated or burned."""
    worker = Worker(tiny.address, concurrency=1, window=5)
    started, go = asyncio.Event(), asyncio.Event()

    @worker.handler("q")
    async def handle(payload):
        started.set()
        await go.wait()

    tiny.push("q", *[b""] * 5)
    async with working(worker) as serving:
        await started.wait()
        await tiny.until(lambda: len(tiny.jobs(ACTIVE)) == 5)
        worker.stop()
        await tiny.until(lambda: len(tiny.jobs(READY)) == 4)
        assert not serving.done()
        go.set()
        await serving
    assert len(tiny.jobs(COMPLETED)) == 1
    assert all(entry.releases == [INTERRUPTED] for entry in tiny.jobs(READY))
    assert {entry.attempt for entry in tiny.jobs()} == {1}
    assert worker.stats.released == 4


async def test_the_stream_is_left_politely(tiny):
    """Drain, its confirm, half-close: the server ends the call, and nobody counts as lost."""
    worker = Worker(tiny.address)
    worker.handler("q")(do_nothing)
    async with working(worker) as serving:
        port = tiny.ports[0]
        worker.stop()
        await serving
    assert port.frames[-2].drain
    assert [settle.seq for settle in port.frames[-1].settles] == [1]
    assert port.half_closed


async def test_after_the_soft_stop_handlers_are_cancelled(tiny):
    """Their jobs are given back, for others to do."""
    worker = Worker(tiny.address, soft_stop=0.01)
    started, started_plain = asyncio.Event(), threading.Event()
    reasons = []

    @worker.handler("q", "async")
    async def handle(payload, context):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            reasons.append(context.cancel_reason)

    @worker.handler("q", "plain")
    def handle_plain(payload, context):
        started_plain.set()
        context.wait_cancelled(20)
        reasons.append(context.cancel_reason)
        context.raise_if_cancelled()

    tiny.push("q", b"", name="async")
    tiny.push("q", b"", name="plain")
    async with working(worker) as serving:
        await started.wait()
        await in_thread(started_plain.wait)
        worker.stop()
        await serving
    assert reasons == [CancelReason.STOPPING] * 2
    assert [entry.releases for entry in tiny.jobs()] == [[INTERRUPTED], [INTERRUPTED]]


async def test_after_the_hard_stop_jobs_are_released_whoever_holds_on(tiny, caplog):
    """A handler that does not heed its end is reported with its stack, and costs nobody its job."""
    worker = Worker(tiny.address, soft_stop=0, hard_stop=0.01)
    started, end = threading.Event(), threading.Event()

    @worker.handler("q")
    def stubborn(payload):
        started.set()
        end.wait(20)

    tiny.push("q", b"")
    async with working(worker) as serving:
        await in_thread(started.wait)
        worker.stop()
        await serving
        end.set()
    assert tiny.jobs()[0].releases == [INTERRUPTED]
    assert "did not stop in time" in caplog.text
    assert "stubborn" in caplog.text


@pytest.mark.parametrize("is_async", [True, False])
async def test_handlers_know_until_when_they_have(tiny, is_async):
    """The end of the soft stop; before somebody stops the worker there is no end."""
    worker = Worker(tiny.address, soft_stop=3600)
    started, go = threading.Event(), threading.Event()
    deadlines = []

    @worker.handler("q", "plain")
    def handle(payload, context):
        deadlines.append(context.deadline)
        started.set()
        go.wait(20)
        deadlines.append(context.deadline)

    @worker.handler("q", "async")
    async def handle_async(payload, context):
        await in_thread(handle, payload, context)

    tiny.push("q", b"", name="async" if is_async else "plain")
    async with working(worker) as serving:
        await in_thread(started.wait)
        worker.stop()
        await tiny.until(lambda: any(frame.drain for frame in tiny.ports[0].frames))
        soon = datetime.now(UTC) + timedelta(seconds=3600)
        go.set()
        await serving
    assert deadlines[0] is None
    assert abs(deadlines[1] - soon) < timedelta(seconds=10)


async def test_a_job_that_starts_in_the_moment_of_its_release_is_stopped(tiny, monkeypatch):
    """It is somebody else's by then; its handler would work for nothing."""
    worker = Worker(tiny.address, concurrency=1, soft_stop=3600)
    started, reasons = asyncio.Event(), []

    @worker.handler("q")
    async def handle(payload, context):
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            reasons.append(context.cancel_reason)

    (id_,) = tiny.push("q", b"")
    async with working(worker) as serving:
        await started.wait()
        assert worker._worker_run is not None
        shared = worker._worker_run._session
        # As if it had not been among those that run when they were looked at.
        monkeypatch.setattr(
            shared, "release_held", lambda **_keep: SharedSession.release_held(shared)
        )
        worker.stop()
        await serving
    assert reasons == [CancelReason.STOPPING]
    assert tiny.store.jobs[id_].releases == [INTERRUPTED]


async def test_stopping_twice_does_not_wait(tiny):
    """The second call goes to the next stage."""
    worker = Worker(tiny.address, soft_stop=3600)
    started = holding(worker, "q")
    tiny.push("q", b"")
    async with working(worker) as serving:
        await started.wait()
        worker.stop()
        worker.stop()
        await serving
    assert tiny.jobs()[0].releases == [INTERRUPTED]


async def test_cancelling_serve_cancels_handlers_and_gives_their_jobs_back(tiny):
    """A task group that ends does not leave leases behind."""
    worker = Worker(tiny.address)
    started = holding(worker, "q")
    tiny.push("q", b"")
    serving = asyncio.create_task(worker.serve())
    await started.wait()
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert tiny.jobs()[0].releases == [INTERRUPTED]
