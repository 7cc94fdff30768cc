"""A real server in the loop of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobline_server.app import Server
from jobline_server.dev.memory_directory import memory_directory
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.testing.given_settings import given_settings

# The defaults of tests: free ports, no ballast, no time for workers at a stop.
FOR_TESTS: dict[str, Any] = {
    "listen": "127.0.0.1:0",
    "http": "127.0.0.1:0",
    "ballast_bytes": 0,
    "low_space_bytes": 0,
    "drain_seconds": 0,
}


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A started server. `address` is for gRPC, `http` for metrics and health pages."""

    server: Server
    data: Path

    @property
    def address(self) -> str:
        """Returns the address of gRPC."""
        return self.server.addresses[0]

    @property
    def http(self) -> str:
        """Returns the address of the pages."""
        return self.server.http

    @property
    def runtime(self) -> Runtime:
        """Returns its runtime, to inspect."""
        return self.server.runtime

    def advance(self, milliseconds: int) -> None:
        """Advances a manual clock, and runs the timers that are due then."""
        clock = self.server.clock
        if not isinstance(clock, ManualClock):
            raise TypeError("only a manual clock is moved by hand")
        clock.advance(milliseconds)
        while self.runtime.timer_loop.run_due():
            pass


@asynccontextmanager
async def running_server(
    data: Path | None = None,
    *,
    transport: str = "grpcio",
    clock: ManualClock | None = None,
    **settings: Any,
) -> AsyncIterator[RunningServer]:
    """Runs a server for the length of the block. Without `data` it gets a temporary directory, in
    memory where there is room: on a disk, what a start syncs takes longer than all the rest of it.
    `settings` are those of `jobline_server.config.Settings`; those of the environment are ignored.
    With a `clock`, time moves only by `advance`.
    """
    with nullcontext(data) if data else memory_directory() as directory:
        flags = {**FOR_TESTS, "data": directory, "transport": transport, **settings}
        server = Server(given_settings(flags), clock)
        await server.start()
        try:
            yield RunningServer(server, directory)
        finally:
            await server.stop()
