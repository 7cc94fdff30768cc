"""Where the server's time goes: py-spy looks at its stack again and again, from outside.

Sampled from outside, because a profiler inside would count calls and change what it measures. A
profiled run is no measurement all the same: the sampler takes its share of the load's core.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

RATE = 250
TOP = 25
FRAME = re.compile(r"^(?P<name>.*) \((?P<file>.*)\)$")


class NoProfiler(Exception):
    """py-spy is not there."""


def check_installed() -> str:
    """Where py-spy is, or what to do."""
    found = shutil.which("py-spy") or shutil.which("py-spy", path=str(Path(sys.executable).parent))
    if found is None:
        raise NoProfiler(f"py-spy is not there: {sys.executable} -m pip install py-spy")
    return found


@asynccontextmanager
async def profile(pid: int, directory: Path) -> AsyncIterator[None]:
    """Samples a process for as long as the body runs, then prints what it did."""
    output = directory / "profile.txt"
    process = await asyncio.create_subprocess_exec(
        *(check_installed(), "record", "--pid", str(pid), "--rate", str(RATE), "--function"),
        # Not stopped for each sample: that would cost more than what is measured. Who holds the
        # GIL is at work; other threads wait, or sync.
        *("--nonblocking", "--gil"),
        *("--format", "raw", "--duration", "unlimited", "--output", str(output)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        await process.wait()
    Console().print(_table(output.read_text().splitlines()))


def _table(lines: Iterable[str]) -> Table:
    own: Counter[str] = Counter()
    with_callees: Counter[str] = Counter()
    for line in lines:
        stack, _, count = line.rpartition(" ")
        frames = stack.split(";")
        own[frames[-1]] += int(count)
        for frame in set(frames):
            with_callees[frame] += int(count)
    total = sum(own.values()) or 1
    table = Table(title=f"Where the server's time goes: {total:,} samples at {RATE} a second")
    table.add_column("itself", justify="right")
    table.add_column("with callees", justify="right")
    table.add_column("function")
    for frame, samples in own.most_common(TOP):
        table.add_row(f"{samples / total:.1%}", f"{with_callees[frame] / total:.1%}", _short(frame))
    table.add_section()
    for frame, samples in with_callees.most_common(2 * TOP):
        if own[frame] * 2 < samples:
            table.add_row(f"{own[frame] / total:.1%}", f"{samples / total:.1%}", _short(frame))
    return table


def _short(frame: str) -> str:
    """A function and the end of its file's path."""
    match = FRAME.match(frame)
    if match is None:
        return frame
    return f"{match['name']}  {'/'.join(Path(match['file']).parts[-3:])}"
