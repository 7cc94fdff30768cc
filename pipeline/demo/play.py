"""The processes of the demo: a server that exports its history, and workers, one of them killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from demo import counted, load
from demo.screen import Screen
from demo.shop import QUEUES, VERSIONS
from jobline import AsyncClient
from jobline_server.testing import ServerProcess

PIPELINE = Path(__file__).parents[1]
_WORKERS = 3
_KILL_AT, _NEW_VERSION_AT = 0.45, 0.5
_STOP_SECONDS = 20.0
_READY_SECONDS = 30.0


class DemoFailedError(Exception):
    """The demo cannot go on; the message says why."""


@dataclass(frozen=True, slots=True)
class Played:
    """What happened: what the server counted, which worker was killed, and how long it took."""

    totals: dict[str, counted.Totals]
    killed: str
    seconds: float


class Crew:
    """The workers, a process each, by name."""

    def __init__(self, folder: Path, address: str) -> None:
        self._log = folder / "workers.log"
        self._address = address
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, version: str) -> None:
        """Starts a worker of a version."""
        command = [sys.executable, "-m", "demo.worker", "--server", self._address]
        command += ["--id", name, "--version", version]
        with self._log.open("ab") as log:
            self._processes[name] = subprocess.Popen(  # noqa: S603 - our own command
                command, stdout=log, stderr=log, cwd=PIPELINE
            )

    def kill(self, name: str) -> None:
        """Kills a worker with SIGKILL: it can give nothing back."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def check(self) -> None:
        """Raises if a worker has ended by itself."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise DemoFailedError(f"{name} ended with {process.returncode}: see {self._log}")

    def stop(self) -> None:
        """Stops all workers with SIGTERM, all at the same time."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


async def play(folder: Path, seconds: float, screen: Screen) -> Played:
    """Runs server, workers and load; returns when every job has ended but those not yet due, and
    the history is exported.
    """
    server = ServerProcess(folder / "data", history=folder / "history", history_seconds=5)
    async with server, AsyncClient(server.address) as client:
        crew = Crew(folder, server.address)
        try:
            return await _run(server, client, crew, seconds, screen)
        finally:
            crew.stop()


async def _run(
    server: ServerProcess, client: AsyncClient, crew: Crew, seconds: float, screen: Screen
) -> Played:
    await load.prepare(client)
    names = [f"worker-{number}" for number in range(1, _WORKERS + 1)]
    for name in names:
        crew.start(name, VERSIONS[0])
    await _wait_for_workers(client, crew, len(names))
    screen.say(f"A server at {server.address}, and {len(names)} workers of version {VERSIONS[0]}.")
    begun = time.monotonic()
    with screen.progress(f"A shop pushes jobs for {seconds:g} seconds") as tell:
        changing = asyncio.create_task(_change_workers(client, crew, seconds, screen))
        try:
            await load.push_all(client, seconds, tell)
            killed = await changing
        finally:
            changing.cancel()
            with suppress(asyncio.CancelledError):
                await changing
        await load.wait_until_done(client)
    crew.check()
    took = time.monotonic() - begun
    totals = await counted.of_server(client, QUEUES)
    crew.stop()
    if code := await server.terminate():
        raise DemoFailedError(f"the server ended with {code}: see {server.log}")
    return Played(totals, killed, took)


async def _change_workers(client: AsyncClient, crew: Crew, seconds: float, screen: Screen) -> str:
    """Kills the worker that has the most jobs, then starts one of the next version."""
    await asyncio.sleep(seconds * _KILL_AT)
    found = [worker async for worker in client.admin.workers()]
    busiest = max(found, key=lambda worker: worker.in_flight)
    crew.kill(busiest.description.id)
    screen.say(f"kill -9 of {busiest.description.id}, with jobs in its hands.", "bold red")
    await asyncio.sleep(seconds * (_NEW_VERSION_AT - _KILL_AT))
    name = f"worker-{_WORKERS + 1}"
    crew.start(name, VERSIONS[1])
    screen.say(f"{name} takes its place, with version {VERSIONS[1]}.")
    return busiest.description.id


async def _wait_for_workers(client: AsyncClient, crew: Crew, many: int) -> None:
    until = time.monotonic() + _READY_SECONDS
    while len([worker async for worker in client.admin.workers()]) < many:
        crew.check()
        if time.monotonic() > until:
            raise DemoFailedError("the workers did not connect")
        await asyncio.sleep(0.05)
