"""The exporter while the spool cannot be written for another reason than a full disk."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest

from jobline_server.history import spool as spool_module
from jobline_server.history.destination import Directory
from jobline_server.runtime import checkpoints
from jobline_server.runtime import exporter as exporter_module
from jobline_server.runtime.checkpoints import Checkpoints
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.exporter import Exporter, ExporterSettings
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.exporting import exporting, push, rows_in


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def broken(*_arguments: object) -> None:
    raise OSError(errno.EROFS, "broken")


def journal_rows(runtime: Runtime) -> int:
    return next(iter(runtime.core.slots)).position.journal_rows


class Told(Directory):
    """A directory that tells when it has a file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.has_one = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def send(self, name: str, path: Path) -> None:
        super().send(name, path)
        self._loop.call_soon_threadsafe(self.has_one.set)


async def test_checkpoints_wait_until_events_can_be_stored_again(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal is all that has them. A shard is not staged again and again meanwhile, and it
    needs no checkpoint to store them when that is possible.
    """
    destination = Told(tmp_path / "out")
    async with exporting(tmp_path, clock, destination) as (runtime, exporter):
        await push(runtime, 3)
        with monkeypatch.context() as patched:
            patched.setattr(spool_module, "write_durably", broken)
            assert await runtime.checkpoints.take_due(everything=True) == 1
            assert (journal_rows(runtime), exporter.rows_total, exporter.holds(0)) == (1, 0, True)
            assert await runtime.checkpoints.take_due(everything=True) == 0
            assert not runtime.failed.done()
        async with asyncio.timeout(10):
            await destination.has_one.wait()
        await push(runtime, 1)
        assert await runtime.checkpoints.take_due(everything=True) == 1
        assert (journal_rows(runtime), exporter.rows_total) == (0, 4)
    assert len(rows_in(tmp_path / "out")) == 4


def end_the_wait(runtime: Runtime, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    if why == "a full disk":
        runtime.core.commits.disk_full = True
    else:
        monkeypatch.setattr(checkpoints, "HELD_JOURNAL_BYTES_MAX", 1)


@pytest.mark.parametrize("why", ["a full disk", "a long journal"])
async def test_the_queue_goes_first_if_events_cannot_be_stored_for_long(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    async with exporting(tmp_path, clock) as (runtime, exporter):
        await push(runtime, 3)
        monkeypatch.setattr(spool_module, "write_durably", broken)
        await runtime.checkpoints.take_due(everything=True)
        await push(runtime, 2)
        with monkeypatch.context() as patched:
            end_the_wait(runtime, patched, why)
            assert await runtime.checkpoints.take_due(everything=True) == 1
        assert (journal_rows(runtime), exporter.memory_bytes) == (0, 0)
        assert (exporter.lost_files, exporter.rows_total) == (2, 0)


async def test_what_comes_after_events_were_given_up_has_a_journal_of_its_own(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is lost only if it comes to the same end."""
    async with exporting(tmp_path, clock) as (runtime, exporter):
        await push(runtime, 3)
        with monkeypatch.context() as patched:
            patched.setattr(spool_module, "write_durably", broken)
            await runtime.checkpoints.take_due(everything=True)
            with monkeypatch.context() as ending:
                end_the_wait(runtime, ending, "a long journal")
                await runtime.checkpoints.take_due(everything=True)
            await push(runtime, 4)
            await runtime.checkpoints.take_due(everything=True)
            assert (journal_rows(runtime), exporter.lost_files) == (1, 1)
    assert len(rows_in(tmp_path / "out")) == 4


async def test_nothing_is_staged_for_a_checkpoint_whose_events_cannot_be_stored(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged: list[object] = []

    async def prepare(_exporter: Exporter, _shard: int) -> None:
        broken()

    async def stage(*rows: object) -> None:
        staged.append(rows)

    async with exporting(tmp_path, clock) as (runtime, _):
        await push(runtime, 3)
        with monkeypatch.context() as patched:
            patched.setattr(Exporter, "prepare", prepare)
            patched.setattr(Checkpoints, "_stage", stage)
            await runtime.checkpoints.take_due(everything=True)
        assert (staged, journal_rows(runtime)) == ([], 1)


async def test_the_bound_of_files_that_cannot_be_stored_is_that_of_all_shards_together(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter_module, "UNSTORED_FILES_MAX", 1)
    async with exporting(tmp_path, clock, shards=2) as (runtime, exporter):
        await push(runtime, 3)
        with monkeypatch.context() as patched:
            patched.setattr(spool_module, "write_durably", broken)
            with pytest.raises(OSError, match="broken"):
                await exporter._finish_all()
            one_file = exporter.memory_bytes
            assert one_file > 0
            exporter._settings = ExporterSettings(3_600, one_file)
            with pytest.raises(OSError, match="broken"):
                await exporter._finish_all()
            assert exporter.memory_bytes == 0
