"""How a worker begins and ends as a whole: once, told or refused, as a task or as a program."""

from __future__ import annotations

import asyncio
import signal
import threading
from contextlib import asynccontextmanager

import grpc
import pytest

from jobline import ClientClosed, Internal, InvalidArgument, PermissionDenied, Worker
from jobline.v1 import job_service_pb2 as pb
from tests.client.live.either import in_thread
from tests.client.live.tiny_store import COMPLETED
from tests.client.live.working import program, working

INTERRUPTED = pb.RELEASE_REASON_INTERRUPTED


def do_nothing(payload):
    return None


async def test_a_worker_that_is_stopped_before_it_starts_does_nothing(tiny):
    """It connects, says goodbye, and returns."""
    worker = Worker(tiny.address)
    worker.handler("q")(do_nothing)
    tiny.push("q", b"")
    worker.stop()
    await worker.serve()
    assert not tiny.jobs(COMPLETED)


async def test_run_beside_a_running_loop_is_refused_and_says_what_to_do(tiny, recwarn):
    """Nothing has begun: the same worker can be served in that loop."""
    worker = Worker(tiny.address)
    worker.handler("q")(do_nothing)
    with pytest.raises(InvalidArgument, match=r"await worker\.serve\(\)"):
        worker.run()
    assert not recwarn.list
    tiny.push("q", b"")
    async with working(worker):
        await tiny.until(lambda: tiny.jobs(COMPLETED))


async def test_a_worker_stops_although_its_server_is_gone(tiny):
    """It has nothing to tell anybody."""
    worker = Worker(tiny.address)
    worker.handler("q")(do_nothing)
    async with working(worker) as serving:
        await tiny.stop()
        worker.stop()
        await serving


async def test_a_worker_that_is_told_to_stop_while_it_starts_stops(tiny):
    """Between the lifespan and the first look, from whatever thread."""
    stopped = []

    @asynccontextmanager
    async def lifespan():
        stopped.append(await in_thread(worker.stop))
        yield

    worker = Worker(tiny.address, lifespan=lifespan)
    worker.handler("q")(do_nothing)
    await worker.serve()
    assert stopped == [None]


async def test_a_worker_whose_keeper_breaks_says_so(tiny, monkeypatch):
    """It stops, and does not look as if it had been told to."""
    worker = Worker(tiny.address)
    worker.handler("q")(do_nothing)
    serving = asyncio.create_task(worker.serve())
    await worker.wait_connected()
    assert worker._worker_run is not None
    monkeypatch.setattr(worker._worker_run._router, "flush", lambda: 1 / 0)
    worker._worker_run.wake()
    with pytest.raises(Internal, match="the supervisor broke"):
        await serving


async def test_a_worker_that_cannot_start_leaves_nothing_running(tiny, monkeypatch):
    """Where a process may have no more threads, say."""
    worker = Worker(tiny.address, concurrency=2)
    worker.handler("q")(do_nothing)

    def no_more(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("jobline._worker.supervisor.Supervisor.start", no_more)
    before = set(threading.enumerate())
    with pytest.raises(RuntimeError, match="can't start"):
        await worker.serve()
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("jobline-"):
            await in_thread(thread.join, 10)
            assert not thread.is_alive(), thread.name


async def test_who_waits_for_a_worker_that_ends_before_is_told(tiny):
    """It was refused, or its lifespan failed; `serve` says which."""
    refused = Worker(tiny.address)
    refused.handler("q")(do_nothing)
    tiny.refuse("Stream", grpc.StatusCode.PERMISSION_DENIED, "never")
    serving = asyncio.create_task(refused.serve())
    with pytest.raises(ClientClosed, match="before it was connected"):
        await refused.wait_connected()
    with pytest.raises(PermissionDenied):
        await serving


async def test_a_worker_is_not_started_twice_at_the_same_time(tiny):
    """Not while its lifespan begins either."""
    begun, go = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def lifespan():
        begun.set()
        await go.wait()
        yield

    worker = Worker(tiny.address, lifespan=lifespan)
    worker.handler("q")(do_nothing)
    serving = asyncio.create_task(worker.serve())
    await begun.wait()
    with pytest.raises(ClientClosed, match="runs once"):
        await worker.serve()
    worker.stop()
    go.set()
    await serving


PROGRAM = """
import asyncio, sys, time
from jobline import Worker
worker = Worker(sys.argv[1], soft_stop=0.2, hard_stop=0.2)

@worker.handler("q")
async def handle(payload):
    print("started", flush=True)
    if sys.argv[2] == "blocked":
        time.sleep(3600)
    while sys.argv[2] == "stubborn":
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

worker.run()
print("stopped", flush=True)
"""


@pytest.mark.parametrize("kind", ["free", "blocked"])
async def test_sigterm_drains_even_while_a_handler_blocks_the_loop(tiny, kind):
    """The program ends by itself, or at least has given its job back when it is killed."""
    (id_,) = tiny.push("q", b"")
    async with program(PROGRAM, tiny.address, kind) as process:
        assert await process.stdout.readline() == b"started\n"
        if kind == "free":
            await tiny.until(lambda: tiny.jobs(COMPLETED))
        process.send_signal(signal.SIGTERM)
        if kind == "free":
            assert await process.stdout.readline() == b"stopped\n"
            assert await process.wait() == 0
        else:
            await tiny.until(lambda: tiny.store.jobs[id_].releases == [INTERRUPTED])


SIGNALLED_ELSEWHERE = """
import signal, sys, threading
from jobline import Worker
worker = Worker(sys.argv[1])

@worker.handler("q")
def handle(payload):
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

worker.run()
print("stopped", flush=True)
"""


async def test_a_signal_wakes_a_loop_that_has_nothing_to_do(tiny):
    """It may be delivered to any thread; Python's handler runs in the one that sleeps."""
    tiny.push("q", b"")
    async with program(SIGNALLED_ELSEWHERE, tiny.address) as process:
        assert await process.stdout.readline() == b"stopped\n"
        assert await process.wait() == 0
    assert tiny.jobs(COMPLETED)


async def test_a_program_ends_although_a_task_ignores_its_cancellation(tiny):
    """Nothing can end that task; it is left behind with the loop."""
    (id_,) = tiny.push("q", b"")
    async with program(PROGRAM, tiny.address, "stubborn") as process:
        assert await process.stdout.readline() == b"started\n"
        process.send_signal(signal.SIGTERM)
        assert await process.stdout.readline() == b"stopped\n"
        assert await process.wait() == 0
    assert tiny.store.jobs[id_].releases == [INTERRUPTED]
