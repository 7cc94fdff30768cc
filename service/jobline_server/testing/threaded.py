"""A real server for blocking tests, whose loop runs in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jobline_server.testing.embedded import RunningServer, running_server


@contextmanager
def running_server_in_thread(
    data: Path | None = None, *, transport: str = "grpcio", **settings: Any
) -> Iterator[RunningServer]:
    """Runs a server for the length of the block, like `running_server`. Its `runtime` belongs to
    the other thread, so there is no manual clock.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="jobline-server", daemon=True)
    thread.start()
    try:
        running = running_server(data, transport=transport, **settings)
        server = asyncio.run_coroutine_threadsafe(running.__aenter__(), loop).result()
        try:
            yield server
        finally:
            stop = running.__aexit__(None, None, None)
            asyncio.run_coroutine_threadsafe(stop, loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
