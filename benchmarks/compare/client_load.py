"""The client as a load: `client_load.py LOAD HOST:PORT QUEUE`, run by each tree's Python. The load
is `work`, `push` or `push-traced`.

It reads numbers, one per line, makes a load of so many jobs for each, and writes what it took. It
imports the client's public names and nothing of the benchmarks, which the other tree's environment
does not have.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from time import perf_counter, process_time

import uvloop

from jobline import AsyncClient, Worker

CALLERS = 64
CONCURRENCY = 256
PAYLOAD = bytes(range(100))

Load = Callable[[int], Awaitable[float]]


async def work(address: str, queue: str, jobs: int) -> float:
    """Handles jobs that are there already; returns the seconds from the first one to the end."""
    worker = Worker(address, concurrency=CONCURRENCY)
    handled = 0
    began = 0.0

    @worker.handler(queue)
    async def handle(_payload: object) -> None:
        nonlocal handled, began
        began = began or perf_counter()
        handled += 1
        if handled == jobs:
            worker.stop()

    # It returns when the last ack is confirmed.
    await worker.serve()
    return perf_counter() - began


async def push(client: AsyncClient, queue: str, jobs: int, *, is_traced: bool) -> float:
    """Pushes jobs from many callers, one per call; returns the seconds it took."""
    left = iter(range(jobs))

    async def caller() -> None:
        for number in left:
            if is_traced:
                trace = f"00-{number:032x}-{number:016x}-01"
                await client.push(queue, PAYLOAD, headers={"traceparent": trace})
            else:
                await client.push(queue, PAYLOAD)

    began = perf_counter()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return perf_counter() - began


async def serve(load: Load) -> None:
    """One load for each line, until there are no more."""
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        before = process_time()
        seconds = await load(int(line))
        print(json.dumps({"seconds": seconds, "processor": process_time() - before}), flush=True)


async def main(kind: str, address: str, queue: str) -> None:
    """Serves loads of one kind."""
    if kind == "work":
        await serve(lambda jobs: work(address, queue, jobs))
        return
    async with AsyncClient(address) as client:
        is_traced = kind == "push-traced"
        await serve(lambda jobs: push(client, queue, jobs, is_traced=is_traced))


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:4]))
