"""A server as a process: started on one core, asked for its memory and time, ended.

The server's standard output is one line when it is ready; its log goes to a file, which is shown
when it does not start.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

# The server has one core, everything else the other.
SERVER_CORE = 0
LOAD_CORE = 1

STOP_SECONDS = 60.0
TICKS = os.sysconf("SC_CLK_TCK")


def memory_bytes(pid: int) -> int:
    """Returns the resident memory of a process."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


class ServerFailed(Exception):
    """A server did not start, or did not stop."""


def pin_load() -> None:
    """This process, its threads to come and its children leave the server's core alone."""
    os.sched_setaffinity(0, {LOAD_CORE})


@dataclass(slots=True)
class ServerProcess:
    """A server. `start` returns when it is ready."""

    module: str
    arguments: list[str]
    log: Path
    python: str = sys.executable
    address: str = ""
    http: str = ""
    start_seconds: float = 0.0
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> Self:
        """Starts it and waits for its ready line."""
        began = time.perf_counter()
        with self.log.open("ab") as log:
            pinned = ["taskset", "-c", str(SERVER_CORE), self.python]
            self._process = subprocess.Popen(
                [*pinned, "-m", self.module, *self.arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                # Ctrl-C is for the benchmarks, which then end their servers.
                start_new_session=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            raise ServerFailed(f"{self.module} did not start:\n{self.log.read_text()[-3000:]}")
        self.start_seconds = time.perf_counter() - began
        ready = json.loads(line)
        self.address, self.http = str(ready["grpc"]), str(ready.get("http", ""))
        return self

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        """Ends it politely; may be called twice."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it as a power cut would."""
        self._end(signal.SIGKILL)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """It does nothing for so long."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise ServerFailed(f"{self.module} did not stop; its log is {self.log}") from None
        finally:
            if process.stdout is not None:
                process.stdout.close()

    def memory_bytes(self) -> int:
        """Resident memory."""
        return memory_bytes(self.pid)

    def processor_seconds(self) -> float:
        """Time of the processor that its threads have used, in user and kernel mode."""
        threads = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        if nanoseconds := [int(thread.read_text().split()[0]) for thread in threads]:
            return sum(nanoseconds) / 1e9
        # A kernel without schedstat counts in ticks. The name of a process may hold spaces; what
        # follows its parenthesis does not.
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS
