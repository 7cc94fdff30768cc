"""A worker beside a test: started, waited for, stopped."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from jobline import Worker


@asynccontextmanager
async def working(worker: Worker) -> AsyncIterator[asyncio.Task[None]]:
    """A worker that runs in this loop; stopped at the end unless the test did."""
    serving = asyncio.create_task(worker.serve())
    connected = asyncio.create_task(worker.wait_connected())
    await asyncio.wait([serving, connected], return_when=asyncio.FIRST_COMPLETED)
    connected.cancel()
    try:
        yield serving
    finally:
        while not serving.done():
            worker.stop()
            await asyncio.wait([serving], timeout=0.5)
    await serving


@asynccontextmanager
async def program(text: str, *arguments: str) -> AsyncIterator[Any]:
    """A Python program in a process of its own; killed at the end if it still runs."""
    client = Path(__file__).parents[3] / "clients" / "python"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        text,
        *arguments,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env={**os.environ, "PYTHONPATH": str(client)},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
