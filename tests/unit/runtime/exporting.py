"""A runtime that exports its history, and what it has exported."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from jobline_server.engine.commands import Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel
from jobline_server.history.destination import Destination, Directory
from jobline_server.history.spool import Spool
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.exporter import Exporter, ExporterSettings
from jobline_server.runtime.opening import open_runtime
from jobline_server.runtime.runtime import Runtime, RuntimeSettings
from tests.unit.runtime.conftest import files_in, nothing_is_damaged

ROOM = 1 << 20


@asynccontextmanager
async def exporting(
    path: Path,
    clock: ManualClock,
    destination: Destination | None = None,
    room: int = ROOM,
    shards: int = 1,
) -> AsyncIterator[tuple[Runtime, Exporter]]:
    """A runtime that exports to `path / "out"`; its loop is not started, files are finished when a
    test says so.
    """
    spool = Spool(path / "history", room)
    destination = destination or Directory(path / "out")
    exporter = Exporter(spool, destination, ExporterSettings(seconds=3_600), clock)
    names = count(1)
    runtime = await open_runtime(
        files_in(path / "data"),
        shards=shards,
        clock=clock,
        settings=RuntimeSettings(),
        new_name=lambda: f"{next(names):02}",
        report=nothing_is_damaged,
        exporter=exporter,
    )
    try:
        yield runtime, exporter
    finally:
        await exporter.stop()
        await runtime._stores.close()


async def push(runtime: Runtime, jobs: int, queue: str = "q") -> None:
    command = Push(
        queue, DEFAULT_OPTIONS, payloads=Payloads.of([b"x"] * jobs), level=AckLevel.BUFFERED
    )
    await runtime.pushes.push(command)
    await runtime.core.commits.commit_once()


def rows_in(path: Path) -> list[dict[str, Any]]:
    return [
        row
        for file in sorted(path.rglob("*.parquet"))
        for row in pq.ParquetFile(file).read().to_pylist()
    ]


def files_of(path: Path) -> dict[str, int]:
    """Returns the number of rows of each file."""
    return {file.name: pq.read_metadata(file).num_rows for file in path.rglob("*.parquet")}


def offsets(path: Path) -> list[int]:
    return [row["offset"] for row in rows_in(path)]
