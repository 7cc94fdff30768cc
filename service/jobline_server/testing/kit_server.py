"""Servers in memory for tests, in an event loop of their own thread: for tests with and without a
loop alike.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from jobline_server.dev.memory_directory import memory_directory
from jobline_server.dev.servers import Controls, ManualServer
from jobline_server.testing.given_settings import given_settings

T = TypeVar("T")

# Nothing of the disk, no port, no time for workers at a stop.
SETTINGS: dict[str, Any] = {
    "listen": "",
    "http": "",
    "transport": "grpcio",
    "ballast_bytes": 0,
    "low_space_bytes": 0,
    "drain_seconds": 0,
}


class ServerLoop:
    """An event loop in a thread, for one server after the other."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="jobline-server", daemon=True
        )
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Starts work in the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Does work in the loop; an interrupt of the caller ends it."""
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Ends the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class KitServer:
    """A started server, and the loop that it is in."""

    def __init__(self, loop: ServerLoop, server: ManualServer) -> None:
        self.loop = loop
        self._server = server
        self.address = server.addresses[0]

    @property
    def controls(self) -> Controls:
        """Returns what moves its clock; for use in its loop."""
        return self._server.controls


@contextmanager
def kit_server(loop: ServerLoop, start_ms: int | None, **settings: Any) -> Iterator[KitServer]:
    """Runs an empty server for the length of the block."""
    with memory_directory() as folder:
        socket = folder.with_name("socket")
        flags = {**SETTINGS, "unix_socket": str(socket), "data": folder, **settings}

        async def start() -> ManualServer:
            server = ManualServer(given_settings(flags), start_ms=start_ms)
            await server.start()
            return server

        server = loop.call(start())
        try:
            yield KitServer(loop, server)
        finally:
            loop.call(server.stop())
