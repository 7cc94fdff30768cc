"""The processes of the demo: a server that can be killed and restarted, and its workers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from jobline_server.cli.demo.gate import Gate
from jobline_server.cli.demo.journal import Journal, What

STOP_SECONDS = 20.0


class DemoFailed(Exception):
    """The demo cannot go on; the message says why."""


class ServerProcess:
    """A server process with default settings, on a directory of its own."""

    def __init__(self, folder: Path, journal: Journal) -> None:
        self.address = "127.0.0.1:0"
        self.log = folder / "server.log"
        self._data = folder / "data"
        self._journal = journal
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Starts the server and waits for its ready line; keeps the port after a kill."""
        command = [sys.executable, "-m", "jobline_server", "--data", str(self._data)]
        command += ["--listen", self.address, "--http", ""]
        with self.log.open("a") as log:
            self._process = subprocess.Popen(  # noqa: S603  # our own command
                command, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self.address = self._read_address()
        self._journal.note(What.SERVER_STARTED, address=self.address)

    def kill(self) -> None:
        """Kills the server with SIGKILL: it can write or close nothing."""
        process = self._running()
        self._journal.note(What.SERVER_KILLED)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """Stops the server with SIGTERM; does nothing if it does not run."""
        if self._process is not None and self._process.poll() is None:
            _end(self._process)

    def _read_address(self) -> str:
        process = self._running()
        if process.stdout is None:
            raise DemoFailed("the server has no stdout to read")
        ready = process.stdout.readline()
        if ready:
            return str(json.loads(ready)["grpc"])
        raise DemoFailed(f"the server did not start (exit code {process.wait()}): see {self.log}")

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            raise DemoFailed("the server was never started")
        return self._process


class Crew:
    """The workers, a process each, by name."""

    def __init__(
        self, folder: Path, journal: Journal, gate: Gate, *, concurrency: int, pace: float
    ) -> None:
        self._log = folder / "workers.log"
        self._journal = journal
        self._common = ["--journal", str(journal.path), "--gate", str(gate.path)]
        self._common += ["--concurrency", str(concurrency), "--pace", str(pace)]
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._killed: set[str] = set()

    def start(self, name: str, address: str) -> None:
        """Starts a worker."""
        command = [sys.executable, "-m", "jobline_server.cli.demo.worker", "--id", name]
        with self._log.open("a") as log:
            self._processes[name] = subprocess.Popen(  # noqa: S603  # our own command
                [*command, "--server", address, *self._common], stdout=log, stderr=log
            )

    def kill(self, name: str) -> None:
        """Kills a worker with SIGKILL: it cannot release its jobs."""
        self._killed.add(name)
        self._journal.note(What.WORKER_KILLED, worker=name)
        self._processes[name].kill()
        self._processes[name].wait()

    def check(self) -> None:
        """Raises if a worker ended without being killed."""
        for name, process in self._processes.items():
            if name not in self._killed and process.poll() is not None:
                raise DemoFailed(f"{name} ended with {process.returncode}: see {self._log}")

    def stop(self) -> None:
        """Stops all workers with SIGTERM, all at the same time."""
        running = [process for process in self._processes.values() if process.poll() is None]
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            _end(process)


def _end(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
