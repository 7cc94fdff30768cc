"""P7 in steps: where the microseconds of a single push go.

    python -m benchmarks.steps [--transport grpcio]

Pushes one job at a time at a server that stamps the borders of its layers, and prints the median of
each step. A stamp costs a tenth of a microsecond. What is left of the time that the caller measured
is the transport's, on both sides, and the caller's own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import bodies, machine
from benchmarks.h2load import post_timed
from benchmarks.latency import CALLS
from benchmarks.processes import ServerProcess, pin_load
from jobline_server import serving
from jobline_server.config import Settings
from jobline_server.rpc.convert.push import PushReader
from jobline_server.rpc.guard import Guard
from jobline_server.runtime.calls.push_batcher import PushBatcher
from jobline_server.runtime.commits.commits import Commits
from jobline_server.storage.sqlite.store import SqliteStore

# From one border to the next, in the order of a push.
STEPS = (
    ("guard, decode and check", "called", "decoded"),
    ("convert", "decoded", "converted"),
    ("decide and apply", "converted", "decided"),
    ("until the commit is cut", "decided", "cut"),
    ("facts to bytes, and to the thread", "cut", "on_thread"),
    ("SQLite: statement, write-ahead log, fsync", "on_thread", "stored"),
    ("back to the loop", "stored", "written"),
    ("notify listeners, wake the caller", "written", "answered"),
    ("make the reply", "answered", "replied"),
)
# Calls before those that count.
WARM_CALLS = 200

Stamps = dict[str, float]


class Stamper:
    """Stamps the borders of the push under way; there is one at a time."""

    def __init__(self) -> None:
        self.pushes: list[Stamps] = []
        self._current: Stamps = {}

    def install(self) -> None:
        """Wraps the functions at the borders."""
        self._wrap(PushReader, "command", before="decoded", after="converted")
        self._wrap(PushBatcher, "_decide", after="decided")
        self._wrap(Commits, "_cut", before="cut")
        self._wrap(SqliteStore, "_append", before="on_thread", after="stored")
        self._wrap_coroutine(SqliteStore, "commit", "written")
        self._wrap_coroutine(PushBatcher, "push", "answered")
        unary = Guard._unary  # noqa: SLF001  # every call begins and ends there

        def guarded(guard: Guard, *arguments: Any, **options: Any) -> Any:
            answer = unary(guard, *arguments, **options)

            async def stamped(raw: bytes, context: Any) -> bytes:
                self._current = {"called": perf_counter()}
                reply: bytes = await answer(raw, context)
                self._current["replied"] = perf_counter()
                if "answered" in self._current:
                    self.pushes.append(self._current)
                return reply

            return stamped

        setattr(Guard, unary.__name__, guarded)

    def medians(self) -> dict[str, float]:
        """Returns the seconds of each step."""
        counted = self.pushes[WARM_CALLS:]
        return {
            name: median(stamps[end] - stamps[begin] for stamps in counted)
            for name, begin, end in STEPS
        }

    def _wrap(self, owner: type, name: str, *, before: str = "", after: str = "") -> None:
        function: Callable[..., Any] = getattr(owner, name)

        @wraps(function)
        def stamped(*arguments: Any, **options: Any) -> Any:
            if before:
                self._current[before] = perf_counter()
            outcome = function(*arguments, **options)
            if after:
                self._current[after] = perf_counter()
            return outcome

        setattr(owner, name, stamped)

    def _wrap_coroutine(self, owner: type, name: str, after: str) -> None:
        function: Callable[..., Any] = getattr(owner, name)

        @wraps(function)
        async def stamped(*arguments: Any, **options: Any) -> Any:
            outcome = await function(*arguments, **options)
            self._current[after] = perf_counter()
            return outcome

        setattr(owner, name, stamped)


def serve(data: Path, transport: str) -> None:
    """Serves until SIGTERM, then writes the steps beside the data."""
    stamper = Stamper()
    stamper.install()
    settings = Settings(
        data=data, listen="127.0.0.1:0", http="", transport=transport, dedicated_cpu=True
    )
    serving.run(settings)
    data.with_suffix(".json").write_text(json.dumps(stamper.medians()))


def measure(directory: Path, transport: str) -> tuple[float, dict[str, float]]:
    """Returns the seconds that a push took its caller, and those of each step."""
    data = directory / "data"
    arguments = ["--transport", transport, "--serve", str(data)]
    server = ServerProcess("benchmarks.steps", arguments, directory / "server.log").start()
    message = bodies.plain(1)
    url = f"http://{server.address}{bodies.PUSH}"
    times = asyncio.run(post_timed(url, message, calls=CALLS + WARM_CALLS))
    server.stop()
    return median(times[WARM_CALLS:]), json.loads(data.with_suffix(".json").read_text())


def table(caller: float, steps: dict[str, float], fsync: float, transport: str) -> Table:
    """Returns what a run found, a row per step."""
    found = Table("step", "µs", title=f"one push at a time, {transport}")
    outside = caller - sum(steps.values())
    rows = {"transport, both ways, and the caller": outside, **steps, "in all": caller}
    for name, seconds in rows.items():
        found.add_row(name, f"{seconds * 1e6:.0f}")
    found.caption = f"append 4 KiB + fdatasync alone: {fsync * 1e6:.0f} µs"
    return found


def main() -> None:
    """Measures, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transport", choices=("grpcio", "native"), default="native")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        serve(chosen.serve, chosen.transport)
        return
    pin_load()
    with tempfile.TemporaryDirectory(dir=".") as made:
        directory = Path(made)
        fsync, _ = machine.fsync_times(directory)
        caller, steps = measure(directory, chosen.transport)
    Console(file=sys.stdout).print(table(caller, steps, fsync, chosen.transport))


if __name__ == "__main__":
    main()
