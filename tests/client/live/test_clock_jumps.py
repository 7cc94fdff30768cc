"""A machine whose clock is set an hour ahead or back: its leases are kept, its waits end right."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from jobline import AsyncClient, Client, Context, WaitTimeout, Worker
from jobline_server.testing import ServerProcess

HOUR = 3_600


class SetClock:
    """The module `time` of a machine whose clock was set. The client alone sees it: gRPC makes its
    deadlines of this clock and one of its own.
    """

    def __init__(self, ahead: int) -> None:
        self._ahead = ahead

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def time(self) -> float:
        return time.time() + self._ahead

    def time_ns(self) -> int:
        return time.time_ns() + self._ahead * 10**9


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
async def test_leases_and_waits_go_by_another_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: int
) -> None:
    """The server is another process, whose clock is right."""
    started, free = threading.Event(), threading.Event()
    async with ServerProcess(tmp_path / "data") as server, AsyncClient(server.address) as client:
        worker = Worker(server.address, concurrency=1)

        @worker.handler("long", payload=int)
        def handle(number: int, context: Context) -> int:
            started.set()
            free.wait(60)
            return number + context.attempt

        serving = asyncio.create_task(worker.serve())
        pushed = await client.push("long", 1, lease="2s")
        await asyncio.to_thread(started.wait, 60)
        result = asyncio.create_task(client.wait_one(pushed.id, timeout=60))

        def wait_in_vain() -> float:
            with Client(server.address) as blocking:
                never = blocking.push("nobody", 1, job_key="never")
                began = time.monotonic()
                with pytest.raises(WaitTimeout):
                    blocking.wait_one(never.id, timeout=3)
                return time.monotonic() - began

        in_vain = asyncio.create_task(asyncio.to_thread(wait_in_vain))
        for module in [one for name, one in sys.modules.items() if name.startswith("jobline.")]:
            if vars(module).get("time") is time:
                monkeypatch.setattr(module, "time", SetClock(jump))
        # Longer than the lease.
        assert await in_vain >= 3
        free.set()
        assert (await result).value() == 2
        job = await client.jobs.get(pushed.id)
        assert (job.attempts, job.stalls) == (1, 0)
        worker.stop()
        await serving
