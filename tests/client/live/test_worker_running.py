"""Where a worker runs, and when it ends by itself."""

from __future__ import annotations

import asyncio

import pytest

from jobline import InvalidArgument, Worker, job
from tests.client.live.either import in_thread


async def test_a_worker_runs_in_any_thread(tiny):
    """Trial D8: `run` needs no signals; `stop` ends it, from anywhere."""
    worker = Worker(tiny.address)

    @worker.handler("q", payload=bytes)
    def stop(payload):
        worker.stop()

    tiny.push("q", b"x")
    await in_thread(worker.run)
    assert worker.stats.done == 1


async def test_signals_belong_to_the_main_thread(tiny):
    """Trial D8: who asks for them elsewhere is told what to do."""
    worker = Worker(tiny.address)
    worker.handler("q")(print)
    with pytest.raises(InvalidArgument, match="leave it out here, and end"):
        await in_thread(lambda: asyncio.run(worker.serve(signals=True)))


async def test_a_worker_ends_when_it_is_idle(tiny):
    """Trial D8: after the last job, and not before."""
    worker = Worker(tiny.address)
    done: list[bytes] = []
    worker.handler("q", payload=bytes)(done.append)
    tiny.push("q", b"1", b"2", b"3")
    await in_thread(lambda: worker.run(exit_when_idle=0.05))
    assert sorted(done) == [b"1", b"2", b"3"]
    with pytest.raises(InvalidArgument, match="above 0 s"):
        await Worker(tiny.address, [job(queue="q")(print)]).serve(exit_when_idle=0)
