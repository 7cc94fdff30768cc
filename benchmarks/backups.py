"""P18: a backup of a million jobs, what it does to pushes meanwhile, and its restore.

One caller pushes a job at a time, each fsynced before the next, before the backup and until it is
whole. Source, copy and destination are on one disk, which is the worst case for the pushes. Steps
of the loop are timed on a server of their own, in processor time (`million.stepping`).
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from benchmarks import bodies
from benchmarks.bench import SERVER, Bench, Running
from benchmarks.export_steps import STEP_SECONDS_MAX
from benchmarks.figures import Figure, Unit, at_most, shown
from benchmarks.h2load import LoadFailed
from benchmarks.million.stepping import Steps
from benchmarks.sizes import push_rows
from jobline.v1 import admin_service_pb2 as admin
from jobline_server.offline.backups.restoring import find_backup, restore

# Half of them in lots, half with options of their own.
JOBS = 1_000_000
# Pushes before the backup, which are the usual ones.
USUAL = 2_000
# How much longer than usual the longest push may take.
PUSH_SECONDS_MAX = 0.020
POLL_SECONDS = 0.1


class Times(NamedTuple):
    """What pushes took, in seconds."""

    p50: float
    p99: float
    longest: float


class Pushes:
    """One caller, who pushes one job at a time."""

    def __init__(self, server: Running) -> None:
        self._server = server
        self._message = bodies.plain(1)

    async def times(self, until: Callable[[int], bool]) -> Times:
        """Pushes until it is enough of them; returns what they took."""
        seconds: list[float] = []
        while not until(len(seconds)):
            began = perf_counter()
            await self._server.wire.push(self._message)
            seconds.append(perf_counter() - began)
        seconds.sort()
        return Times(seconds[len(seconds) // 2], seconds[len(seconds) * 99 // 100], seconds[-1])


class Silent:
    """Shows no progress."""

    def begin(self, _title: str, _total: int | None) -> Callable[[int], None]:
        """Begins a piece of work."""
        return lambda _amount: None


async def back_up(bench: Bench) -> None:
    """P18: pushes beside a backup, steps of the loop, the backup, and the restore."""
    to = bench.fresh_directory()
    jobs = bench.scaled(JOBS)
    try:
        async with _server(bench, to, SERVER) as server:
            await _fill(server, jobs)
            pushes = Pushes(server)
            usual = await pushes.times(lambda count: count >= bench.scaled(USUAL))
            making = asyncio.ensure_future(_backup(server))
            beside = await pushes.times(lambda _: making.done())
            made, seconds = await making
        _add_pushes(bench, usual, beside)
        size = made.stored_bytes / 1e6
        what = f"backup of {jobs:,} jobs, half of them with options of their own"
        ratio = f"{size / seconds:,.0f} MB/s; it copies and sends at most 67 MB/s each"
        note = f"{size:,.0f} MB; all of copy, check and sending"
        bench.add(Figure("P18", what, seconds, Unit.TIME, ratio=ratio, note=note))
        await _restore(bench, to, jobs, size)
    finally:
        shutil.rmtree(to, ignore_errors=True)
    await _steps(bench, jobs)


def _add_pushes(bench: Bench, usual: Times, beside: Times) -> None:
    for name, before, value in zip(Times._fields, usual, beside, strict=True):
        what = f"one push at a time beside a backup, native: {name}"
        target = at_most(before + PUSH_SECONDS_MAX) if name == "longest" else None
        ratio = f"{shown(before, Unit.TIME)} without"
        bench.add(Figure("P18", what, value, Unit.TIME, target, ratio))


async def _restore(bench: Bench, to: Path, jobs: int, size: float) -> None:
    data = bench.fresh_directory()
    try:
        began = perf_counter()
        now_ms = time.time_ns() // 1_000_000
        await asyncio.to_thread(restore, find_backup(str(to)), data, now_ms, Silent())
        seconds = perf_counter() - began
        async with bench.server_on(data, "native") as server:
            found = (await server.wire.stats()).ready
            if found < jobs:
                raise LoadFailed(f"{jobs} jobs were backed up, and {found} are restored")
            start = server.process.start_seconds
    finally:
        shutil.rmtree(data, ignore_errors=True)
    ratio = f"{size / seconds:,.0f} MB/s"
    note = f"the server on it serves {start:.1f} s later"
    what = f"restore of {jobs:,} jobs: read, compared with checksums, checked"
    bench.add(Figure("P18", what, seconds, Unit.TIME, ratio=ratio, note=note))


async def _steps(bench: Bench, jobs: int) -> None:
    to = bench.fresh_directory()
    file = to.with_suffix(".steps")
    steps = Steps(file, make=True)
    try:
        async with _server(bench, to, ("benchmarks.million.stepping", str(file))) as server:
            await _fill(server, jobs)
            pushes = Pushes(server)
            steps.take()
            await pushes.times(lambda count: count >= bench.scaled(USUAL))
            usual, _ = steps.take()
            making = asyncio.ensure_future(_backup(server))
            await pushes.times(lambda _: making.done())
            await making
            longest, where = steps.take()
    finally:
        shutil.rmtree(to, ignore_errors=True)
        file.unlink()
    if longest > STEP_SECONDS_MAX:
        sys.stderr.write(f"      backup: {longest * 1e3:.1f} ms in {where}\n")
    what = f"longest step of the loop: backup of {jobs:,} jobs"
    ratio = f"{shown(usual, Unit.TIME)} without"
    bench.add(Figure("P18", what, longest, Unit.TIME, at_most(STEP_SECONDS_MAX), ratio))


@asynccontextmanager
async def _server(bench: Bench, to: Path, module: tuple[str, ...]) -> AsyncIterator[Running]:
    data = bench.fresh_directory()
    try:
        flags = ("--backup-to", str(to))
        async with bench.server_on(data, "native", *flags, module=module) as running:
            yield running
    finally:
        shutil.rmtree(data, ignore_errors=True)


async def _fill(server: Running, jobs: int) -> None:
    await server.wire.fill(jobs // 2)
    await push_rows(server, jobs // 2, traced=False)


async def _backup(server: Running) -> tuple[admin.BackupStatus, float]:
    """Makes a backup; returns it, and the seconds from the call until it was whole."""
    found = (await server.wire.backup()).backup
    while found.state == admin.BACKUP_STATE_RUNNING:
        await asyncio.sleep(POLL_SECONDS)
        found = (await server.wire.backups()).backup
    if found.state != admin.BACKUP_STATE_WHOLE:
        raise LoadFailed(f"the backup failed: {found.problem}")
    return found, (found.ended_at.ToNanoseconds() - found.started_at.ToNanoseconds()) / 1e9
