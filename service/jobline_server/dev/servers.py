"""Servers for tests: their clock is moved by hand, and an empty one can take the place of another.

    listener ──▶ `SharedDoors` ──▶ the handlers of the server that is behind them now

A reset starts an empty server, lets it take the calls, and only then stops the one before. So no
call finds a closed address, and nothing is left of what was there: no job, no setting, no id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

from jobline_server.app import Server
from jobline_server.background.periodic import Background
from jobline_server.config import Settings
from jobline_server.dev.shared_doors import SharedDoors
from jobline_server.dev.time_travel import TimeTravel
from jobline_server.memory import collect_all
from jobline_server.rpc.validate.fields import not_served
from jobline_server.runtime.clock import ManualClock, SystemClock
from jobline_server.runtime.core import Core
from jobline_server.runtime.runtime import Runtime

NewDirectory = Callable[[], AbstractContextManager[Path]]
"""Makes an empty directory, which is removed at the end of the context."""


class Controls:
    """What TestService does with one server: moves its time, waits for its workers, resets it."""

    def __init__(
        self,
        runtime: Runtime,
        background: Background,
        clock: ManualClock,
        reset: Callable[[int | None], Coroutine[Any, Any, int]],
    ) -> None:
        self._travel = TimeTravel(runtime, background, clock)
        self.advance, self.advance_to = self._travel.advance, self._travel.advance_to
        self.drain, self.wait_for = self._travel.workers.drain, self._travel.workers.wait_for
        self.reset = reset
        self.end = self._travel.end

    def wall_ms(self) -> int:
        """Returns the time of the server."""
        return self._travel.now().wall_ms


class _Life:
    """A server from its start to the next reset."""

    def __init__(self, settings: Settings, server: ManualServer, start_ms: int | None) -> None:
        self.directory = ExitStack()
        self.controls: Controls | None = None
        self._clock = ManualClock(SystemClock().now().wall_ms if start_ms is None else start_ms)
        self._reset = server.reset
        self.server = Server(settings, self._clock, server.doors, self._make_controls)

    def _make_controls(self, runtime: Runtime, background: Background) -> Controls:
        self.controls = Controls(runtime, background, self._clock, self._reset)
        return self.controls

    async def end(self) -> None:
        """Stops the server, and removes its directory if that is its own."""
        with self.directory:
            await self.server.stop()


class ManualServer:
    """A server whose clock is moved by hand, from `start` to `stop`, through any number of resets.

    `directory`: makes the directory of each of its lives; None: that of the settings, and no reset.
    `start_ms`: the first time of the clock, default that of the machine.
    """

    def __init__(
        self,
        settings: Settings,
        directory: NewDirectory | None = None,
        *,
        start_ms: int | None = None,
    ) -> None:
        self._settings = settings
        self._directory = directory
        self._start_ms = start_ms
        self._with_core: list[Callable[[Core], None]] = []
        self.doors = SharedDoors(settings)
        self._life: _Life | None = None
        self._resetting = asyncio.Lock()
        self._tasks: set[asyncio.Future[int]] = set()
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def server(self) -> Server:
        """Returns the server of now; raises before `start`."""
        return self._now().server

    @property
    def controls(self) -> Controls:
        """Returns what moves its clock; raises before `start`."""
        controls = self._now().controls
        if controls is None:
            raise RuntimeError("the server was not started")
        return controls

    @property
    def transport(self) -> str:
        """Returns the name of the transport of gRPC."""
        return self.doors.transport

    @property
    def addresses(self) -> list[str]:
        """Returns the addresses of gRPC."""
        return self.server.addresses

    @property
    def http(self) -> str:
        """Returns the address of HTTP; "" without."""
        return self.server.http

    @property
    def scheme(self) -> str:
        """Returns `https` with TLS, else `http`."""
        return self.doors.scheme

    def with_core(self, call: Callable[[Core], None]) -> None:
        """Calls a function with the core of each life, this one and those to come."""
        self._with_core.append(call)
        call(self.server.runtime.core)

    async def start(self) -> None:
        """Opens everything."""
        self._life = await self._begin(self._start_ms)

    async def stop(self) -> None:
        """Closes everything. May be called twice, and after a failed start."""
        async with self._resetting:
            if self._life is not None:
                await self._life.end()
            self._life = None

    def hasten(self) -> None:
        """Ends the time that `stop` gives workers to finish."""
        if self._life is not None:
            self._life.server.hasten()

    async def reset(self, start_ms: int | None) -> int:
        """Puts an empty server in the place of the present one; returns the time of its clock."""
        if self._directory is None:
            raise not_served("", "Reset is for servers in memory: this one keeps a directory")
        # A caller that does not wait for the end takes nothing along.
        resetting = asyncio.ensure_future(self._reset_to(start_ms))
        self._tasks.add(resetting)
        resetting.add_done_callback(self._tasks.discard)
        return await asyncio.shield(resetting)

    async def _reset_to(self, start_ms: int | None) -> int:
        async with self._resetting:
            before = self._now()
            life = await self._begin(start_ms)
            self.doors.switch()
            self._life = life
            if before.controls is not None:
                await before.controls.end()
            before.server.hasten()
            await before.end()
            collect_all()
            return self.controls.wall_ms()

    async def _begin(self, start_ms: int | None) -> _Life:
        with ExitStack() as directory:
            settings = self._settings
            if self._directory is not None:
                data = directory.enter_context(self._directory())
                settings = settings.model_copy(update={"data": data})
            life = _Life(settings, self, start_ms)
            await life.server.start()
            life.directory = directory.pop_all()
        life.server.runtime.failed.add_done_callback(self._handle_failed)
        for call in self._with_core:
            call(life.server.runtime.core)
        return life

    def _handle_failed(self, failed: asyncio.Future[None]) -> None:
        error = None if failed.cancelled() else failed.exception()
        if error is not None and not self.failed.done():
            self.failed.set_exception(error)

    def _now(self) -> _Life:
        if self._life is None:
            raise RuntimeError("the server was not started")
        return self._life
