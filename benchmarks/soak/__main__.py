"""`python -m benchmarks.soak --minutes 10`: soaks a server, prints a table, judges it.

Ends with 0 if nothing grew that should not, with 1 otherwise, or when the load met an answer that
it does not expect.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.processes import ServerProcess, pin_load
from benchmarks.soak import samples
from benchmarks.soak.load import Load, unexpected
from benchmarks.soak.samples import MIB, Sample

LINES = 20


def main() -> int:
    """Reads the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="How long. Default: 10.")
    parser.add_argument("--seed", type=int, default=1, help="Of chance in the load. Default: 1.")
    parser.add_argument("--transport", default="auto", help="auto, grpcio or native.")
    arguments = parser.parse_args()
    pin_load()
    # Handlers of the load fail by chance, as often as it takes; that is no news.
    logging.getLogger("jobline").setLevel(logging.CRITICAL)
    directory = Path(tempfile.mkdtemp(prefix=".bench-soak-", dir=Path.cwd()))
    try:
        return uvloop.run(_soak(arguments, directory, Console()))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


async def _soak(arguments: argparse.Namespace, directory: Path, console: Console) -> int:
    words = ["--data", str(directory / "data"), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    words += ["--transport", arguments.transport, "--log-level", "warning", "--drain-seconds", "5"]
    server = ServerProcess("jobline_server", words, directory / "server.log").start()
    load = Load(server.address, random.Random(arguments.seed))  # repeatable
    loading = asyncio.create_task(load.run())
    try:
        taken = await _take(server, loading, load, arguments.minutes * 60, console)
    except BaseExceptionGroup as group:
        console.print(f"[red]the load met what it does not expect:[/red]\n{unexpected(group)}")
        server.kill()
        return 1
    server.stop()
    _show(console, load, taken)
    log = (directory / "server.log").read_text()
    if log:
        console.print(f"[yellow]the server warned:[/yellow]\n{log[:4_000]}")
    return 0 if all(verdict.holds for verdict in samples.judge(taken)) else 1


async def _take(
    server: ServerProcess,
    loading: asyncio.Task[None],
    load: Load,
    seconds: float,
    console: Console,
) -> list[Sample]:
    """Samples at even moments, a line each; ends the load. Raises what ended it early."""
    console.print("   s  memory MiB   fds      jobs    jobs/s     keys  refused  stall ms (p99.9)")
    began = time.monotonic()
    taken: list[Sample] = []
    for number in range(LINES + 1):
        due = began + seconds * number / LINES
        await asyncio.wait([loading], timeout=due - time.monotonic())
        if loading.done():
            break
        now = time.monotonic() - began
        taken.append(await asyncio.to_thread(samples.take, now, server.pid, server.http))
        console.print(_line(taken, load.refused.total()), highlight=False)
    loading.cancel()
    with suppress(asyncio.CancelledError):
        await loading
    return taken


def _line(taken: list[Sample], refused: int) -> str:
    before, now = taken[-2] if len(taken) > 1 else taken[-1], taken[-1]
    passed = now.seconds - before.seconds
    rate = (now.handled - before.handled) / passed if passed else 0.0
    stall = samples.stall([before, now]) * 1_000
    return (
        f"{now.seconds:4.0f}  {now.memory_bytes / MIB:10.1f}  {now.descriptors:4d}"
        f"  {now.handled:8,}  {rate:8,.0f}  {now.keys:7,}  {refused:7,}  {stall:g}"
    )


def _show(console: Console, load: Load, taken: list[Sample]) -> None:
    done = ", ".join(f"{count:,} {what}" for what, count in sorted(load.counts.items()))
    refused = ", ".join(f"{count:,} {why}" for why, count in sorted(load.refused.items()))
    console.print(f"done: {done}\nrefused: {refused}", highlight=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("", "found", "allowed", ""):
        table.add_column(title)
    for verdict in samples.judge(taken):
        holds = "[green]holds[/green]" if verdict.holds else "[red]GREW[/red]"
        table.add_row(verdict.what, verdict.found, verdict.allowed, holds)
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
