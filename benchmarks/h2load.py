"""Load from outside Python: h2load posts one prepared body over and over.

h2load sees HTTP statuses only, and gRPC tells errors in trailers: whoever calls this asks the
server afterwards how much arrived.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.bodies import framed
from benchmarks.processes import LOAD_CORE

PROGRAM = "h2load"
PACKAGE = "nghttp2-client"


class LoadFailed(Exception):
    """A load did not do what it was meant to measure."""


@dataclass(frozen=True, slots=True)
class Load:
    """What h2load saw."""

    calls: int
    seconds: float

    @property
    def rate(self) -> float:
        """Calls a second."""
        return self.calls / self.seconds


@dataclass(frozen=True, slots=True)
class Callers:
    """Calls in flight: so many connections, and so many calls at once on each."""

    connections: int
    each: int = 1

    def __str__(self) -> str:
        return str(self.connections * self.each)


def check_installed() -> None:
    """Say what to install, before anything is measured."""
    if shutil.which(PROGRAM) is None:
        raise LoadFailed(f"{PROGRAM} is not there: apt-get install {PACKAGE}")


async def post(url: str, message: bytes, *, calls: int, callers: Callers) -> Load:
    """Posts a message `calls` times."""
    with TemporaryDirectory() as directory:
        said = await _run(Path(directory), url, message, calls, callers)
    return _load(said, calls)


async def post_timed(url: str, message: bytes, *, calls: int) -> list[float]:
    """Posts a message `calls` times, one after another; returns what each took, in seconds."""
    with TemporaryDirectory() as directory:
        log = Path(directory) / "log"
        said = await _run(Path(directory), url, message, calls, Callers(1), f"--log-file={log}")
        _load(said, calls)
        return [int(line.split("\t")[2]) / 1e6 for line in log.read_text().splitlines()]


async def _run(
    directory: Path,
    url: str,
    message: bytes,
    calls: int,
    callers: Callers,
    *more: str,
) -> str:
    body = directory / "body"
    body.write_bytes(framed(message))
    process = await asyncio.create_subprocess_exec(
        *("taskset", "-c", str(LOAD_CORE), PROGRAM),
        *("-n", str(calls), "-c", str(callers.connections), "-m", str(callers.each)),
        *("-d", str(body), "-H", "te: trailers", "-H", "content-type: application/grpc"),
        *more,
        url,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    if process.returncode:
        raise LoadFailed(f"h2load ended with {process.returncode}: {said.decode()}")
    return said.decode()


def _load(said: str, calls: int) -> Load:
    finished = re.search(r"^finished in ([\d.]+)(us|ms|s|m)", said, re.MULTILINE)
    succeeded = re.search(r"(\d+) succeeded", said)
    if not finished or not succeeded or int(succeeded[1]) != calls:
        raise LoadFailed(f"h2load did not end well: {said}")
    factor = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}[finished[2]]
    return Load(calls, float(finished[1]) * factor)
