"""The exporter on a runtime with real files."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobline_server.engine.commands import Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel
from jobline_server.history import files
from jobline_server.history import spool as spool_module
from jobline_server.history.destination import Destination, Directory
from jobline_server.history.spool import Spool
from jobline_server.runtime import checkpoints, export_sender, export_shard
from jobline_server.runtime import exporter as exporter_module
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.exporter import EventsHeld, Exporter, ExporterSettings
from jobline_server.runtime.opening import open_runtime
from jobline_server.runtime.runtime import Runtime, RuntimeSettings
from tests.unit.runtime.conftest import files_in, nothing_is_damaged, opened

ROOM = 1 << 20


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@asynccontextmanager
async def exporting(
    path: Path, clock: ManualClock, destination: Destination | None = None, room: int = ROOM
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
        shards=1,
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


async def push(runtime: Runtime, jobs: int) -> None:
    command = Push(
        "q", DEFAULT_OPTIONS, payloads=Payloads.of([b"x"] * jobs), level=AckLevel.BUFFERED
    )
    await runtime.pushes.push(command)
    await runtime.core.commits.commit_once()


def rows_in(path: Path) -> list[dict[str, Any]]:
    return [
        row
        for file in sorted(path.rglob("*.parquet"))
        for row in pq.ParquetFile(file).read().to_pylist()
    ]


async def test_what_was_committed_is_at_the_destination_after_a_stop(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with exporting(tmp_path, clock) as (runtime, exporter):
        await push(runtime, 3)
        await push(runtime, 2)
        clock.advance(2_000)
        assert exporter.lag_seconds == 2
    rows = rows_in(tmp_path / "out")
    assert [row["event"] for row in rows] == ["pushed"] * 5
    assert len({row["offset"] for row in rows}) == 5
    assert (exporter.rows_total, exporter.spool_bytes, exporter.lag_seconds) == (5, 0, 0)


async def test_a_checkpoint_stores_events_before_it_cuts_the_journal(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with exporting(tmp_path, clock) as (runtime, exporter):
        await push(runtime, 3)
        assert exporter.spool_bytes == 0
        assert await runtime.checkpoints.take_due(everything=True) == 1
        assert exporter.rows_total == 3
        assert next(iter(runtime.core.slots)).position.journal_rows == 0


async def test_a_checkpoint_waits_while_events_cannot_be_stored(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal is all that has them."""

    def broken(*_arguments: object) -> None:
        raise OSError(errno.EIO, "broken")

    async with exporting(tmp_path, clock) as (runtime, exporter):
        place = next(iter(runtime.core.slots)).position
        await push(runtime, 3)
        write = spool_module.write_durably
        monkeypatch.setattr(spool_module, "write_durably", broken)
        await runtime.checkpoints.take_due(everything=True)
        assert (place.journal_rows, exporter.rows_total) == (1, 0)
        assert not runtime.failed.done()
        monkeypatch.setattr(spool_module, "write_durably", write)
        await push(runtime, 1)
        await runtime.checkpoints.take_due(everything=True)
        assert (place.journal_rows, exporter.rows_total) == (0, 4)


async def test_a_start_makes_events_again_that_were_not_stored(
    tmp_path: Path, clock: ManualClock
) -> None:
    """As after a crash: the first exporter stores nothing more."""
    async with exporting(tmp_path, clock) as (runtime, exporter):
        await push(runtime, 3)
        await exporter.finish(0)
        await push(runtime, 2)
        exporter._shards.clear()
    async with exporting(tmp_path, clock) as (runtime, exporter):
        await push(runtime, 1)
    rows = rows_in(tmp_path / "out")
    assert len(rows) == len({row["offset"] for row in rows}) == 6


async def test_a_crash_before_the_first_file_loses_nothing(
    tmp_path: Path, clock: ManualClock
) -> None:
    """An export begins when it is turned on, not when it has stored something."""
    async with exporting(tmp_path, clock) as (runtime, exporter):
        await push(runtime, 3)
        exporter._shards.clear()
    async with exporting(tmp_path, clock):
        pass
    assert len(rows_in(tmp_path / "out")) == 3


async def test_an_export_begins_when_it_is_turned_on(tmp_path: Path, clock: ManualClock) -> None:
    """Off, on, off, on: what a checkpoint took meanwhile is missing, and nothing else."""
    async with opened(tmp_path / "data", clock) as runtime:
        await push(runtime, 1)
    async with exporting(tmp_path, clock) as (runtime, _):
        await push(runtime, 2)
    async with opened(tmp_path / "data", clock) as runtime:
        await push(runtime, 4)
    async with exporting(tmp_path, clock) as (runtime, _):
        await push(runtime, 8)
    assert len(rows_in(tmp_path / "out")) == 2 + 4 + 8


async def test_a_gap_is_counted_when_a_checkpoint_took_events_without_an_export(
    tmp_path: Path, clock: ManualClock
) -> None:
    """On, off, on: only what the journal still has is made up for."""
    async with exporting(tmp_path, clock) as (runtime, _):
        await push(runtime, 1)
    async with opened(tmp_path / "data", clock) as runtime:
        await push(runtime, 2)
        await push(runtime, 2)
        assert await runtime.checkpoints.take_due(everything=True) == 1
    async with opened(tmp_path / "data", clock) as runtime:
        await push(runtime, 4)
    async with exporting(tmp_path, clock) as (runtime, exporter):
        # The two pushes, and what the checkpoint itself committed.
        assert exporter.lost_entries >= 2
        await push(runtime, 8)
    assert len(rows_in(tmp_path / "out")) == 1 + 4 + 8
    async with exporting(tmp_path, clock) as (_, exporter):
        assert exporter.lost_entries == 0


def break_once(monkeypatch: pytest.MonkeyPatch, times: int = 1) -> None:
    """The rows of the next pushes of seven jobs cannot be made."""
    make, left = export_shard.rows_of, [times]

    def breaking(applied: Any) -> Any:
        is_seven = any(len(getattr(each.fact, "payloads", ())) == 7 for each in applied)
        if is_seven and left[0]:
            left[0] -= 1
            raise RuntimeError("a fault")
        return make(applied)

    monkeypatch.setattr(export_shard, "rows_of", breaking)


async def test_an_entry_whose_events_cannot_be_made_is_made_again_by_the_next_start(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checkpoints wait for it; all others are exported, and no file spans it."""
    break_once(monkeypatch)
    async with exporting(tmp_path, clock) as (runtime, exporter):
        await push(runtime, 1)
        await push(runtime, 7)
        await push(runtime, 2)
        place = next(iter(runtime.core.slots)).position
        assert await runtime.checkpoints.take_due(everything=True) == 0
        assert (place.journal_rows, exporter.faults, exporter.lost_entries) == (3, 1, 0)
    assert sorted(files_of(tmp_path / "out").values()) == [1, 2]
    async with exporting(tmp_path, clock) as (runtime, exporter):
        assert exporter.faults == 0
        assert await runtime.checkpoints.take_due(everything=True) == 1
    assert Counter(Counter(offsets(tmp_path / "out")).values()) == {1: 8, 2: 2}


async def test_what_fails_again_at_a_start_is_lost_and_counted(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the journal would grow for ever."""
    break_once(monkeypatch, times=2)
    async with exporting(tmp_path, clock) as (runtime, _):
        await push(runtime, 7)
        await push(runtime, 2)
    async with exporting(tmp_path, clock) as (runtime, exporter):
        assert exporter.lost_entries == 1
        assert await runtime.checkpoints.take_due(everything=True) == 1
    assert len(set(offsets(tmp_path / "out"))) == 2


@pytest.mark.parametrize("why", ["a full disk", "a long journal"])
async def test_the_queue_needs_its_disk_more_than_the_history_does(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    break_once(monkeypatch)
    async with exporting(tmp_path, clock) as (runtime, exporter):
        await push(runtime, 7)
        assert await runtime.checkpoints.take_due(everything=True) == 0
        if why == "a full disk":
            runtime.core.commits.disk_full = True
        else:
            monkeypatch.setattr(checkpoints, "HELD_JOURNAL_BYTES_MAX", 1)
        assert await runtime.checkpoints.take_due(everything=True) == 1
        assert (exporter.faults, exporter.lost_entries) == (1, 1)


async def test_rows_that_cannot_be_encoded_are_made_again_by_the_next_start(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object) -> None:
        raise RuntimeError("a fault")

    async with exporting(tmp_path, clock) as (runtime, exporter):
        await push(runtime, 1)
        await exporter.finish(0)
        await push(runtime, 7)
        with monkeypatch.context() as patched:
            patched.setattr(files.ParquetFile, "add", broken)
            with pytest.raises(EventsHeld):
                await exporter.finish(0)
        await push(runtime, 2)
        with pytest.raises(EventsHeld):
            await exporter.finish(0)
    async with exporting(tmp_path, clock):
        pass
    assert len(set(offsets(tmp_path / "out"))) == 10


async def test_files_that_cannot_be_stored_take_only_so_much_memory(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest are dropped; the journal has their events until the next start."""

    def broken(*_arguments: object) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(exporter_module, "UNSTORED_FILES_MAX", 0)
    async with exporting(tmp_path, clock) as (runtime, exporter):
        with monkeypatch.context() as patched:
            patched.setattr(spool_module, "write_durably", broken)
            for jobs in (1, 2):
                await push(runtime, jobs)
                with pytest.raises(OSError, match="broken"):
                    await exporter.finish(0)
                assert exporter.memory_bytes == 0
        await push(runtime, 4)
        assert await runtime.checkpoints.take_due(everything=True) == 0
    assert len(offsets(tmp_path / "out")) == 4
    async with exporting(tmp_path, clock):
        pass
    assert len(set(offsets(tmp_path / "out"))) == 7


async def test_commits_wait_while_rows_come_faster_than_they_are_encoded(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So what waits has a bound, and nothing is lost."""
    monkeypatch.setattr(exporter_module, "WAITING_BYTES_MAX", 0)
    async with exporting(tmp_path, clock) as (runtime, exporter):
        await push(runtime, 3)
        async with runtime.core.commits.exclusive:
            encoding = asyncio.ensure_future(exporter._encode_much())
            await asyncio.sleep(0)
            assert exporter._shards[0].rows.count == 3
        await encoding
        assert exporter._shards[0].rows.count == 0
    assert len(rows_in(tmp_path / "out")) == 3


class NeverAnswers:
    """A destination that takes no file until it is released."""

    def __init__(self) -> None:
        self.released = threading.Event()

    def send(self, name: str, path: Path) -> None:
        self.released.wait(30)


async def test_memory_and_disk_are_bounded_while_a_destination_never_answers(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a stop does not wait for it."""
    monkeypatch.setattr(export_sender, "STOP_SECONDS", 0.01)
    destination = NeverAnswers()
    try:
        async with exporting(tmp_path, clock, destination, room=40_000) as (runtime, exporter):
            for _ in range(20):
                await push(runtime, 100)
                await exporter.finish(0)
                assert exporter.memory_bytes == 0
                assert exporter.spool_bytes <= 40_000
            assert exporter.rows_total == 2_000
            assert exporter.lost_files > 0
    finally:
        destination.released.set()


def files_of(path: Path) -> dict[str, int]:
    """Returns the number of rows of each file."""
    return {file.name: pq.read_metadata(file).num_rows for file in path.rglob("*.parquet")}


def offsets(path: Path) -> list[int]:
    return [row["offset"] for row in rows_in(path)]
