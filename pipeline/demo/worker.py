"""One worker of the demo, in a process of its own: does the jobs of all queues until SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from demo.shop import KINDS, Kind, fate_of
from jobline import Context, Worker

# Short, so that others soon get the jobs of a worker that was killed.
LEASE_SECONDS = 2.0
CONCURRENCY = 48


def handler_of(kind: Kind, version: str) -> Callable[[Any, Context], Awaitable[None]]:
    """Returns the handler of a kind: it takes its time, and fails if the job's fate says so."""

    async def work(payload: Any, context: Context) -> None:
        is_down = isinstance(payload, dict) and bool(payload.get("down"))
        fate = fate_of(kind, version, job_id=context.id, attempt=context.attempt, is_down=is_down)
        await asyncio.sleep(fate.seconds)
        if fate.error is not None:
            raise fate.error

    return work


def main() -> None:
    """Works until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    for flag in ("--server", "--id", "--version"):
        parser.add_argument(flag, required=True)
    given = parser.parse_args()
    worker = Worker(
        given.server,
        id=given.id,
        version=given.version,
        concurrency=CONCURRENCY,
        lease=LEASE_SECONDS,
    )
    for kind in KINDS:
        worker.handler(kind.queue, kind.name)(handler_of(kind, given.version))
    worker.run()


if __name__ == "__main__":
    main()
