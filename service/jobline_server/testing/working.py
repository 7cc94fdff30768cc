"""Workers that run for the length of a block: in a thread, or in the loop of the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from jobline import ClientClosed, JobType, Worker

ALL_QUEUES = ""


def queues_of(work: Sequence[JobType[Any, Any] | Worker]) -> list[str]:
    """Returns the queues of declared jobs, each once; all, where a worker is among them."""
    names = [ALL_QUEUES if isinstance(one, Worker) else one.queue for one in work]
    return [ALL_QUEUES] if ALL_QUEUES in names or not names else list(dict.fromkeys(names))


def worker_of(address: str, work: Sequence[JobType[Any, Any] | Worker]) -> Worker:
    """Returns the worker of declared jobs, or the one that is given."""
    workers = [one for one in work if isinstance(one, Worker)]
    if not workers:
        return Worker(address, [one for one in work if isinstance(one, JobType)])
    if len(work) > 1:
        raise ValueError("give declared jobs, or one worker")
    return workers[0]


@contextmanager
def working(worker: Worker) -> Iterator[None]:
    """Runs a worker in a thread, from when it is connected; raises what ends it early."""
    connected: Future[None] = Future()

    async def serve() -> None:
        async with working_here(worker) as serving:
            connected.set_result(None)
            await serving

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            if not connected.done():
                connected.set_exception(error)
                return
            raise

    thread = threading.Thread(target=run, name="jobline-worker", daemon=True)
    thread.start()
    try:
        connected.result()
        yield
    finally:
        worker.stop()
        thread.join()


@asynccontextmanager
async def working_here(worker: Worker) -> AsyncIterator[asyncio.Task[None]]:
    """Runs a worker in this loop, from when it is connected; yields its task, and stops it at the
    end of the block.
    """
    serving = asyncio.create_task(worker.serve())
    connected = asyncio.create_task(worker.wait_connected())
    try:
        await asyncio.wait({serving, connected}, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            # It has failed, or was stopped before.
            await serving
            raise ClientClosed("the worker ended before it was connected")
        yield serving
        worker.stop()
        await serving
    finally:
        for task in (serving, connected):
            task.cancel()
        await asyncio.gather(serving, connected, return_exceptions=True)
