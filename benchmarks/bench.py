"""One run of benchmarks: servers and floors on fresh directories, repeats, figures.

A benchmark is a coroutine that takes a `Bench`, opens what it needs and adds figures. Repeats are
there because the machine does other things too: the best is what the server can do, and the others
are what the machine let it do.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import grpc

from benchmarks import bodies, machine, profiling
from benchmarks.certificates import Certificate
from benchmarks.figures import Figure
from benchmarks.h2load import Callers, LoadFailed, post
from benchmarks.processes import ServerFailed, ServerProcess
from benchmarks.wire import Wire

TRANSPORTS = ("grpcio", "native")

# More than any benchmark makes wait: what is measured must not be a refusal.
WAITING_JOBS = 1_000_000_000
WAITING_BYTES = "1TiB"

SERVER = ("jobline_server",)

# The server has a core of its own in every benchmark.
DEDICATED = "--dedicated-cpu"

# What says that a benchmark could not be measured; the others go on.
CANNOT_MEASURE = (
    grpc.RpcError,
    LoadFailed,
    machine.TooFewCores,
    profiling.NoProfiler,
    ServerFailed,
)


@dataclass(slots=True)
class Running:
    """A server that is ready, and a connection to it."""

    process: ServerProcess
    wire: Wire
    is_floor: bool
    certificate: Certificate | None = None

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return self.process.address

    def url(self, path: str) -> str:
        """Where a method is posted to."""
        return f"{'https' if self.certificate else 'http'}://{self.address}{path}"

    async def arrived(self) -> int:
        """What came: jobs that were pushed, or calls of a floor."""
        if self.is_floor:
            return await self.wire.empty_calls()
        return (await self.wire.stats()).pushed_total

    async def completed(self) -> int:
        """Jobs that were completed; none of a floor."""
        return 0 if self.is_floor else (await self.wire.stats()).completed_total


@dataclass(slots=True)
class Bench:
    """A run. `report` is told each figure when it is there. Servers run under `python`, which may
    be another tree's, and get only those flags that are in `flags`; None: all.
    """

    directory: Path
    quick: bool
    fsync_seconds: float
    report: Callable[[Figure], None]
    profile: bool = False
    python: str = sys.executable
    flags: frozenset[str] | None = None
    figures: list[Figure] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=count, repr=False)

    @property
    def repeats(self) -> int:
        """How often each thing is measured."""
        return 1 if self.quick or self.profile else 3

    @property
    def seconds(self) -> float:
        """How long one measurement takes, about."""
        if self.profile:
            return 8.0
        return 0.5 if self.quick else 1.2

    def scaled(self, jobs: int) -> int:
        """A number of jobs, or a tenth of it in a quick run."""
        return jobs // 10 if self.quick else jobs

    def add(self, figure: Figure) -> None:
        """Keeps a figure and shows it."""
        self.figures.append(figure)
        self.report(figure)

    @asynccontextmanager
    async def server(
        self, transport: str, *flags: str, certificate: Certificate | None = None
    ) -> AsyncIterator[Running]:
        """A server on a fresh data directory, which is gone afterwards."""
        data = self.fresh_directory()
        try:
            async with self.server_on(data, transport, *flags, certificate=certificate) as running:
                yield running
        finally:
            shutil.rmtree(data, ignore_errors=True)

    def fresh_directory(self) -> Path:
        """A data directory that nothing was written to."""
        data = self.directory / f"data-{next(self._numbers)}"
        shutil.rmtree(data, ignore_errors=True)
        return data

    @asynccontextmanager
    async def server_on(
        self,
        data: Path,
        transport: str,
        *flags: str,
        module: Sequence[str] = SERVER,
        certificate: Certificate | None = None,
    ) -> AsyncIterator[Running]:
        """A server on a data directory that stays. `module` is another one that takes its flags,
        with words of its own before them. With a `certificate` it is reached by TLS alone.
        """
        flags += certificate.flags if certificate else ()
        arguments = server_flags(data, transport)
        known = (pair for pair in arguments.items() if self.flags is None or pair[0] in self.flags)
        words = [word for pair in known for word in pair if word is not None]
        name, *first = module
        words = [*first, *words, *flags]
        async with self._process(name, words, certificate=certificate) as running:
            yield running

    @asynccontextmanager
    async def floor(self, transport: str, *, parse: bool = False) -> AsyncIterator[Running]:
        """A server with an empty handler."""
        words = ["--transport", transport] + (["--parse"] if parse else [])
        async with self._process("benchmarks.empty", words, is_floor=True) as running:
            yield running

    @asynccontextmanager
    async def _process(
        self,
        module: str,
        arguments: list[str],
        *,
        is_floor: bool = False,
        certificate: Certificate | None = None,
    ) -> AsyncIterator[Running]:
        log = self.directory / "server.log"
        process = ServerProcess(module, arguments, log, self.python).start()
        try:
            credentials = certificate.credentials if certificate else None
            async with Wire(process.address, credentials) as wire:
                yield Running(process, wire, is_floor, certificate)
        except BaseException:
            process.kill()
            raise
        process.stop()

    async def best(
        self, running: Running, measure: Callable[[], Awaitable[float]], *, least: bool = False
    ) -> float:
        """The best of some repeats: the most, or the least."""
        if self.profile and not running.is_floor:
            async with profiling.profile(running.process.pid, self.directory):
                return await measure()
        found = [await measure() for _ in range(self.repeats)]
        return min(found) if least else max(found)

    async def push_rate(
        self, running: Running, message: bytes, *, jobs: int, callers: Callers
    ) -> float:
        """Jobs a second of one push posted over and over by h2load, each counted afterwards."""

        async def posted(calls: int) -> float:
            return await post_counted(running, message, jobs=jobs, calls=calls, callers=callers)

        # The first calls warm both sides up, and say how many fill a measurement.
        in_flight = callers.connections * callers.each
        rate = await posted(max(4 * in_flight, min(1_000, 100_000 // jobs)))
        calls = max(in_flight, round(rate * self.seconds))
        return jobs * await self.best(running, lambda: posted(calls))


async def post_counted(
    running: Running, message: bytes, *, jobs: int, calls: int, callers: Callers
) -> float:
    """Posts a push of `jobs` jobs `calls` times and counts what arrived; returns calls a second."""
    share = 1 if running.is_floor else jobs
    before = await running.arrived()
    load = await post(running.url(bodies.PUSH), message, calls=calls, callers=callers)
    arrived = await running.arrived() - before
    if arrived != calls * share:
        raise LoadFailed(f"{calls} calls of {share} were sent, and {arrived} arrived")
    return load.rate


def server_flags(data: Path, transport: str, listen: str = "127.0.0.1:0") -> dict[str, str | None]:
    """The flags of a server that is measured; None for one without a value."""
    return {
        "--data": str(data),
        "--listen": listen,
        "--http": "",
        "--transport": transport,
        "--log-level": "warning",
        "--max-waiting-jobs": str(WAITING_JOBS),
        "--max-waiting-bytes": WAITING_BYTES,
        # Workers of a benchmark do not say goodbye.
        "--drain-seconds": "0",
        DEDICATED: None,
    }
