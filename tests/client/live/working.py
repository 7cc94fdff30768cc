"""A worker beside a test: started, waited for, stopped."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

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


def holding(worker: Worker, queue: str) -> asyncio.Event:
    """Gives a worker a handler that never ends by itself; the event says that it has begun."""
    started = asyncio.Event()

    @worker.handler(queue)
    async def hold(payload):
        started.set()
        await asyncio.Event().wait()

    return started


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


async def said(caplog: pytest.LogCaptureFixture, name: str, text: str) -> None:
    """Waits until a logger has logged it."""
    heard = asyncio.Event()
    loop = asyncio.get_running_loop()

    class Ear(logging.Handler):
        def emit(self, record):
            if text in record.getMessage():
                loop.call_soon_threadsafe(heard.set)

    ear = Ear()
    logging.getLogger(name).addHandler(ear)
    try:
        if text not in caplog.text:
            await heard.wait()
    finally:
        logging.getLogger(name).removeHandler(ear)


class Silent:
    """Nobody listens to the reports of a handler that is called by hand."""

    def report(self, *_job, **_said):
        return True

    log = report
    finish_phase = report
