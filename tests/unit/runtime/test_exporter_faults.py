"""The exporter when events cannot be made, encoded, stored or sent."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jobline_server.history import spool as spool_module
from jobline_server.history.events import rows_of
from jobline_server.history.parquet import ParquetFile
from jobline_server.history.rows import ShardRows
from jobline_server.runtime import checkpoints, export_sender, export_shard
from jobline_server.runtime import exporter as exporter_module
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.exporter import EventsHeld
from tests.unit.runtime.exporting import exporting, files_of, offsets, push, rows_in


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def break_once(monkeypatch: pytest.MonkeyPatch, times: int = 1) -> None:
    """The rows of the next pushes of seven jobs cannot be made."""
    make, left = rows_of, [times]

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


def full(*_arguments: object) -> None:
    raise OSError(errno.ENOSPC, "full")


async def test_a_checkpoint_makes_room_on_a_disk_without_any_for_the_history(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is lost, and where the export is cannot be saved either."""
    async with exporting(tmp_path, clock) as (runtime, exporter):
        await push(runtime, 3)
        with monkeypatch.context() as patched:
            patched.setattr(spool_module, "write_durably", full)
            await runtime.checkpoints.take_due(everything=True)
        place = next(iter(runtime.core.slots)).position
        assert (place.journal_rows, exporter.lost_files, exporter.failures) == (0, 1, 1)
        await push(runtime, 2)
    assert len(rows_in(tmp_path / "out")) == 2


async def test_a_server_that_exports_starts_on_a_full_disk(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(spool_module, "write_durably", full)
        async with exporting(tmp_path, clock) as (_, exporter):
            assert exporter.failures == 1


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
            patched.setattr(ParquetFile, "add", broken)
            with pytest.raises(EventsHeld):
                await exporter.finish(0)
        await push(runtime, 2)
        with pytest.raises(EventsHeld):
            await exporter.finish(0)
    async with exporting(tmp_path, clock):
        pass
    assert len(set(offsets(tmp_path / "out"))) == 10


def break_footer_once(monkeypatch: pytest.MonkeyPatch) -> None:
    close, left = ParquetFile.close, [1]

    def breaking(file: ParquetFile) -> bytearray:
        if left[0]:
            left[0] -= 1
            raise MemoryError
        return close(file)

    monkeypatch.setattr(ParquetFile, "close", breaking)


async def test_rows_of_a_file_that_cannot_be_finished_are_made_again_by_the_next_start(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_footer_once(monkeypatch)
    async with exporting(tmp_path, clock) as (runtime, exporter):
        await push(runtime, 7)
        with pytest.raises(EventsHeld):
            await exporter.finish(0)
        await push(runtime, 2)
        assert await runtime.checkpoints.take_due(everything=True) == 0
        assert exporter.faults == 1
    async with exporting(tmp_path, clock):
        pass
    assert len(set(offsets(tmp_path / "out"))) == 9


async def test_a_fault_in_one_shard_does_not_keep_the_others_from_being_stored(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it is: the journal has it all."""
    async with exporting(tmp_path, clock, shards=2) as (runtime, exporter):
        for queue in "abcdefgh":
            await push(runtime, 1, queue)
        first, second = exporter._shards.values()
        assert first.rows.count
        assert second.rows.count

        def broken() -> None:
            raise RuntimeError("a fault")

        with monkeypatch.context() as patched:
            patched.setattr(first, "close", broken)
            with pytest.raises(RuntimeError, match="a fault"):
                await exporter._finish_all()
        assert exporter.rows_total > 0
    assert len(rows_in(tmp_path / "out")) == 8


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


async def test_rows_are_taken_to_be_encoded_on_the_loop(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread could take them while commits add some."""
    threads: list[threading.Thread] = []
    take = ShardRows.take

    def taking(rows: ShardRows) -> Any:
        threads.append(threading.current_thread())
        return take(rows)

    monkeypatch.setattr(ShardRows, "take", taking)
    async with exporting(tmp_path, clock) as (runtime, exporter):
        await push(runtime, 3)
        await exporter.finish(0)
        assert threads == [threading.current_thread()]


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
