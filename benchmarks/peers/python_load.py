"""A load on Jobline through its Python client, with the flags and the report of the Go program."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable
from time import perf_counter

import uvloop

from jobline import AsyncClient, Worker

PAYLOAD = b"abcdefghij" * 10
CALLERS = {"single": 1, "many": 64, "bulk": 16}
BATCH = 1_000
CONCURRENCY = 256


async def _load(arguments: argparse.Namespace) -> dict[str, float]:
    async with AsyncClient(arguments.address) as client:
        if arguments.load == "drain":
            await _push(client, arguments, "bulk", arguments.jobs)
            return await _drain(client, arguments)
        load, warming = arguments.load, 0
        if not arguments.jobs:
            # A push of each caller is not timed: it opens connections, or has memory grow.
            warming = CALLERS[load] * (BATCH if load == "bulk" else 1)
            await _push(client, arguments, load, warming)
        jobs, seconds = await _push(client, arguments, load, arguments.jobs)
        counted = await _waiting(client, arguments.queue) - warming
        return {"jobs": jobs, "seconds": seconds, "counted": counted}


async def _push(
    client: AsyncClient, arguments: argparse.Namespace, load: str, enough: int
) -> tuple[int, float]:
    batch = BATCH if load == "bulk" else 1
    push = _bulk(client, arguments.queue) if load == "bulk" else _single(client, arguments.queue)
    begun = pushed = 0
    began = perf_counter()
    end = began + arguments.seconds

    async def caller() -> None:
        nonlocal begun, pushed
        while (begun < enough) if enough else (perf_counter() < end):
            begun += batch
            await push()
            pushed += batch

    await asyncio.gather(*(caller() for _ in range(CALLERS[load])))
    return pushed, perf_counter() - began


def _single(client: AsyncClient, queue: str) -> Callable[[], Awaitable[object]]:
    return lambda: client.push(queue, PAYLOAD)


def _bulk(client: AsyncClient, queue: str) -> Callable[[], Awaitable[object]]:
    payloads = [PAYLOAD] * BATCH
    return lambda: client.push_payloads(queue, payloads)


async def _waiting(client: AsyncClient, queue: str) -> int:
    counts = (await client.queues.get(queue)).counts
    return counts.ready + counts.active


async def _drain(client: AsyncClient, arguments: argparse.Namespace) -> dict[str, float]:
    queue = arguments.queue
    before = left = await _waiting(client, queue)
    over = asyncio.Event()
    worker = Worker(arguments.address, concurrency=CONCURRENCY)

    @worker.handler(queue)
    async def handle(_payload: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            over.set()

    began = perf_counter()
    serving = asyncio.create_task(worker.serve())
    await over.wait()
    # The last acks are under way; each question is a call, so this loop waits.
    while await _waiting(client, queue):
        pass
    seconds = perf_counter() - began
    worker.stop()
    await serving
    return {"jobs": arguments.jobs, "seconds": seconds, "counted": before}


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.python_load")
    parser.add_argument("-address", required=True)
    parser.add_argument("-queue", default="bench")
    parser.add_argument("-load", choices=[*CALLERS, "drain"], required=True)
    parser.add_argument("-seconds", type=float, default=1.0)
    parser.add_argument("-jobs", type=int, default=0)
    print(json.dumps(uvloop.run(_load(parser.parse_args()))))


if __name__ == "__main__":
    main()
