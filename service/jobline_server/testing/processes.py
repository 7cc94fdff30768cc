"""A real server in a process of its own, which a test can kill."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from jobline_server.testing.embedded import FOR_TESTS

READY_SECONDS = 30.0
STOP_SECONDS = 30.0
# What a server says that starts again while another process has its port.
PORT_TAKEN = "address already in use"


class ServerProcess:
    """`python -m jobline_server` on a directory; a restart keeps the addresses. If another process
    was given one of the ports meanwhile, the restart waits until it is free.

    Its log goes to `log`, beside the directory.
    """

    def __init__(self, data: Path, *, python: str = sys.executable, **settings: Any) -> None:
        self.data = data
        self.log = data.with_name(f"{data.name}.log")
        self.ready: dict[str, Any] = {}
        self._python = python
        self._settings = {**FOR_TESTS, **settings}
        self._process: asyncio.subprocess.Process | None = None

    @property
    def address(self) -> str:
        """Returns the address of gRPC."""
        return str(self.ready["grpc"])

    @property
    def http(self) -> str:
        """Returns the address of the pages."""
        return str(self.ready["http"])

    @property
    def pid(self) -> int:
        """Returns the id of the running process."""
        return self._running().pid

    async def start(self) -> None:
        """Starts the process and waits until it is ready."""
        async with asyncio.timeout(READY_SECONDS):
            while True:
                await self.launch()
                try:
                    return await self.wait_ready()
                except RuntimeError:
                    # A start takes long enough to be no busy wait.
                    if not self.ready or PORT_TAKEN not in self._last_words():
                        raise

    async def launch(self) -> None:
        """Starts the process without waiting until it is ready."""
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self.command(), stdout=asyncio.subprocess.PIPE, stderr=log
            )

    def command(self) -> list[str]:
        """Returns the command line."""
        settings = dict(self._settings)
        if self.ready:
            settings |= {"listen": self.address, "http": self.http}
        flags = [_flag(name.replace("_", "-"), value) for name, value in settings.items()]
        return [self._python, "-m", "jobline_server", f"--data={self.data}", *flags]

    async def wait_ready(self) -> None:
        """Waits for the ready line. Raises with the log if the process ends instead."""
        stdout = self._running().stdout
        if stdout is None:
            raise RuntimeError("the process has no stdout")
        async with asyncio.timeout(READY_SECONDS):
            line = await stdout.readline()
        if not line:
            code = await self._running().wait()
            raise RuntimeError(f"the server ended with {code}: {self.log.read_text()[-2_000:]}")
        self.ready = json.loads(line)

    async def kill(self) -> None:
        """Kills the process with SIGKILL."""
        self._running().kill()
        await self._running().wait()

    async def terminate(self) -> int:
        """Sends SIGTERM and waits; returns the exit code."""
        self.signal(signal.SIGTERM)
        return await self.wait()

    async def wait(self) -> int:
        """Waits until the process ends; returns the exit code."""
        async with asyncio.timeout(STOP_SECONDS):
            return await self._running().wait()

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal."""
        self._running().send_signal(number)

    async def restart(self) -> None:
        """Kills the process with SIGKILL, and starts it again at the same addresses."""
        if self._running().returncode is None:
            await self.kill()
        await self.start()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process is not None and self._process.returncode is None:
            await self.kill()

    def _last_words(self) -> str:
        """Returns the last line of the log."""
        return self.log.read_text().rstrip().rpartition("\n")[2]

    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise RuntimeError("the process was not started")
        return self._process


def _flag(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no-{name}"
    return f"--{name}={value}"
