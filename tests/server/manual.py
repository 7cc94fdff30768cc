"""Servers whose clock is moved by hand, and workers for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from jobline import Worker
from jobline_server.config import load_settings
from jobline_server.dev.memory_directory import memory_directory
from jobline_server.dev.servers import ManualServer
from jobline_server.testing.embedded import FOR_TESTS

START_MS = 1_772_355_600_000  # 2026-03-01T09:00:00Z


@asynccontextmanager
async def manual_server(**settings: Any) -> AsyncIterator[ManualServer]:
    """Runs a server that may be reset, from nine in the morning."""
    flags = {**FOR_TESTS, "http": "", "transport": "grpcio", **settings}
    server = ManualServer(load_settings(flags), memory_directory, start_ms=START_MS)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def at_work(
    server: ManualServer, queue: str, handler: Callable[..., Any], **settings: Any
) -> AsyncIterator[Worker]:
    """Runs a worker in this loop, from when it is connected."""
    worker = Worker(server.addresses[0], hard_stop=0.05, soft_stop=0.05, **settings)
    worker.handler(queue)(handler)
    serving = asyncio.create_task(worker.serve())
    await worker.wait_connected()
    try:
        yield worker
    finally:
        worker.stop()
        await serving


def minutes(count: float) -> int:
    """That many, in milliseconds."""
    return round(count * 60_000)
