"""Handlers that ignore their end: reported, replaced, counted, and not listened to any more."""

from __future__ import annotations

import asyncio
import threading

import pytest

from jobline import Worker
from jobline.v1 import job_service_pb2 as pb
from tests.client.live.either import in_thread
from tests.client.live.tiny_store import ACTIVE, CANCELLED, COMPLETED
from tests.client.live.working import said, working


class Stubborn:
    """Handlers that begin their job "stuck" and do not end it before the test says so."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.release = threading.Event()
        self.released_async = asyncio.Event()
        self.ended = threading.Event()

    async def hang_on(self, payload):
        if payload != b"stuck":
            return b"done"
        self.started.set()
        while not self.released_async.is_set():
            try:
                await self.wait_for_the_test()
            except asyncio.CancelledError:
                continue
        self.ended.set()
        return b"late"

    async def wait_for_the_test(self):
        await self.released_async.wait()

    def hang_on_plain(self, payload):
        if payload != b"stuck":
            return b"done"
        self.started.set()
        self.wait_for_the_test_plain()
        self.ended.set()
        return b"late"

    def wait_for_the_test_plain(self):
        self.release.wait(20)

    def let_go(self):
        self.release.set()
        self.released_async.set()


@pytest.fixture
def stubborn():
    """Handlers that hang on until the test ends."""
    handlers = Stubborn()
    yield handlers
    handlers.let_go()


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("reason", ["cancelled", "lease lost"])
async def test_its_place_is_given_to_another_job(tiny, stubborn, caplog, is_async, reason):
    """Whether its job was cancelled or its lease is lost; its stack says where it hangs."""
    worker = Worker(tiny.address, concurrency=1, cancel_grace=0.01)
    handle = stubborn.hang_on if is_async else stubborn.hang_on_plain
    worker.handler("q", payload=bytes)(handle)
    stuck, other = tiny.push("q", b"stuck", b"other")
    entry = tiny.store.jobs[stuck]
    async with working(worker):
        await in_thread(stubborn.started.wait)
        if reason == "cancelled":
            entry.cancel_requested = True
            tiny.ports[0].revoke(entry, pb.REVOKE_REASON_CANCELLED)
            await tiny.until(lambda: entry.state == CANCELLED)
        else:
            tiny.ports[0].revoke(entry, pb.REVOKE_REASON_LEASE_LOST)
            entry.holder = "somebody else"
        await tiny.until(lambda: tiny.store.jobs[other].state == COMPLETED)
        assert (worker.stats.stuck, worker.stats.running) == (1, 0)
        stubborn.let_go()
        await said(caplog, "jobline.worker", "has ended at last")
        assert worker.stats.stuck == 0
    assert f"({reason}; jobs {stuck})" in caplog.text
    assert "wait_for_the_test" in caplog.text
    assert entry.result == b""


@pytest.mark.parametrize("is_async", [True, False])
async def test_the_job_may_come_back_while_its_old_handler_hangs(tiny, stubborn, is_async):
    """The new hand-out runs, and the old one's outcome is not taken for its own."""
    worker = Worker(tiny.address, concurrency=1, cancel_grace=0.01)
    handle = stubborn.hang_on if is_async else stubborn.hang_on_plain
    worker.handler("q", payload=bytes)(handle)
    (id_,) = tiny.push("q", b"stuck")
    entry = tiny.store.jobs[id_]
    async with working(worker):
        await in_thread(stubborn.started.wait)
        stubborn.started.clear()
        tiny.ports[0].revoke(entry, pb.REVOKE_REASON_LEASE_LOST)
        tiny.store.lose(entry)
        await in_thread(stubborn.started.wait)
        assert (worker.stats.stuck, worker.stats.running) == (1, 1)
        stubborn.let_go()
        await tiny.until(lambda: entry.state == COMPLETED)
    assert (entry.delivery, entry.result, worker.stats.done) == (2, b"late", 1)


async def test_a_batch_is_stuck_when_none_of_its_jobs_is_left(tiny, stubborn, caplog):
    """While one is, the handler works for that one."""
    worker = Worker(tiny.address, concurrency=1, cancel_grace=0.01, window=3)

    @worker.batch_handler("q", size=2)
    async def handle(items):
        return [await stubborn.hang_on(b"stuck")] * len(items)

    worker.handler("r", payload=bytes)(stubborn.hang_on)
    first, second = tiny.push("q", b"1", b"2")
    async with working(worker):
        await in_thread(stubborn.started.wait)
        (other,) = tiny.push("r", b"other")
        tiny.ports[0].revoke(tiny.store.jobs[first], pb.REVOKE_REASON_LEASE_LOST)
        await tiny.until(lambda: tiny.store.jobs[other].state == ACTIVE)
        assert worker.stats.stuck == 0
        tiny.ports[0].revoke(tiny.store.jobs[second], pb.REVOKE_REASON_LEASE_LOST)
        await tiny.until(lambda: tiny.store.jobs[other].state == COMPLETED)
        assert worker.stats.stuck == 1
    assert f"jobs {first}, {second}" in caplog.text


@pytest.mark.parametrize("is_async", [True, False])
async def test_there_is_an_end_to_replacing(tiny, stubborn, caplog, is_async):
    """Each that hangs on keeps its thread or task: as many as may run, and then it is said."""
    worker = Worker(tiny.address, concurrency=1, cancel_grace=0.01, window=1)
    handle = stubborn.hang_on if is_async else stubborn.hang_on_plain
    worker.handler("q", payload=bytes)(handle)
    ids = tiny.push("q", b"stuck", b"stuck")
    async with working(worker):
        for id_ in ids:
            await in_thread(stubborn.started.wait)
            stubborn.started.clear()
            entry = tiny.store.jobs[id_]
            entry.cancel_requested = True
            tiny.ports[0].revoke(entry, pb.REVOKE_REASON_CANCELLED)
        await said(caplog, "jobline.worker", "restart this process")
        assert worker.stats.stuck == 1


async def test_a_stuck_handler_does_not_hold_up_the_end_of_its_worker(tiny, stubborn):
    """It has no job any more that somebody could wait for."""
    worker = Worker(tiny.address, concurrency=1, cancel_grace=0.01, soft_stop=3600)
    worker.handler("q", payload=bytes)(stubborn.hang_on_plain)
    stuck, other = tiny.push("q", b"stuck", b"other")
    async with working(worker) as serving:
        await in_thread(stubborn.started.wait)
        tiny.ports[0].revoke(tiny.store.jobs[stuck], pb.REVOKE_REASON_LEASE_LOST)
        tiny.store.jobs[stuck].holder = "somebody else"
        await tiny.until(lambda: tiny.store.jobs[other].state == COMPLETED)
        worker.stop()
        await serving
