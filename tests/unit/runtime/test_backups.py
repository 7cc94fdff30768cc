"""Backups as the runtime makes them, on real files and without another process."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from jobline_server.background.backups import BackupTask
from jobline_server.background.periodic import Background
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.runtime import backups as the_module
from jobline_server.runtime.backups import (
    BackupFailed,
    Backups,
    BackupSettings,
    BackupState,
    CopyToFinish,
    Finisher,
    Step,
)
from jobline_server.runtime.runtime import Runtime
from jobline_server.storage.sqlite.copying import DirectoryCopies
from jobline_server.storage.sqlite.ended_store import SqliteEndedJobStore
from jobline_server.storage.sqlite.store import SqliteStore


class Finishing:
    """Stands for the other process: notes what it is given, and fails if it is told to."""

    def __init__(self) -> None:
        self.given: list[CopyToFinish] = []
        self.fails = False
        self.asked = asyncio.Event()
        self.sending = asyncio.Event()
        self.hangs = False
        self.asks_hang = False

    async def finish(self, copy: CopyToFinish, note: Step) -> int:
        """Takes a copy."""
        note("sending", 1, 2)
        self.given.append(copy)
        self.sending.set()
        if self.hangs:
            await asyncio.Event().wait()
        if self.fails:
            raise BackupFailed("the destination is gone")
        return 7

    async def newest_ms(self, _store: str) -> int:
        """Returns a time of long ago."""
        self.asked.set()
        if self.asks_hang:
            await asyncio.Event().wait()
        return 5


@pytest.fixture
def finishing() -> Finishing:
    """What finishes backups."""
    return Finishing()


@pytest.fixture
def backups(runtime: Runtime, finishing: Finishing, tmp_path: Path) -> Backups:
    """Backups of a runtime."""
    store, ended = runtime.core.store, runtime.ended.ended_store
    assert isinstance(store, SqliteStore)
    assert isinstance(ended, SqliteEndedJobStore)
    copies = DirectoryCopies(tmp_path, lambda: (store.database, ended.database))
    settings = BackupSettings(tmp_path / "backup", "there", spare_bytes=0)
    return Backups(runtime.core, copies, settings, Finisher(finishing.finish, finishing.newest_ms))


async def test_whole_backup_is_noted_and_its_copy_goes(
    backups: Backups, finishing: Finishing, tmp_path: Path
) -> None:
    """Given one that is finished; then it is the newest, and a second one at once was refused."""
    assert await backups.find_newest() == 5
    backups.begin()
    with pytest.raises(Refused) as refused:
        backups.begin()
    assert refused.value.kind is RefusalKind.BACKUP_RUNNING
    view = await backups.wait()
    assert (view.state, view.stored_bytes, view.why) == (BackupState.WHOLE, 7, "")
    assert await backups.find_newest() == view.at_ms > 5
    assert not (tmp_path / "backup").exists()
    assert finishing.given[0].unfinished == ()


async def test_failed_backup_is_named_to_the_next_one(
    backups: Backups, finishing: Finishing
) -> None:
    """Given a destination that fails once; then the next backup takes away what was sent."""
    finishing.fails = True
    backups.begin()
    failed = await backups.wait()
    assert (failed.state, failed.why) == (BackupState.FAILED, "the destination is gone")
    assert backups.failures == 1
    finishing.fails = False
    backups.begin()
    assert (await backups.wait()).state is BackupState.WHOLE
    assert finishing.given[1].unfinished == (failed.name,)


async def test_no_backup_begins_after_a_stop(backups: Backups) -> None:
    """Given a stop in the middle; then that backup is given up, and no other one begins."""
    backups.begin()
    await backups.stop()
    assert (await backups.wait()).state is BackupState.FAILED
    with pytest.raises(Refused):
        backups.begin()


async def test_stop_in_the_middle_is_one_quiet_line(
    backups: Backups, finishing: Finishing, runtime: Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    """Given a due backup that is being sent; when the server stops; then the log says that it was
    given up, without a stack, and nothing counts as a failure.
    """
    caplog.set_level(logging.INFO)
    finishing.hangs = True
    task = BackupTask(backups, 3_600)
    background = Background([task], runtime.core)
    running = asyncio.ensure_future(background.run_once(task))
    async with asyncio.timeout(20):
        await finishing.sending.wait()
        await backups.stop()
        await running
    (line,) = caplog.records
    assert (line.levelno, line.exc_info) == (logging.INFO, None)
    assert "backup given up" in line.getMessage()
    assert backups.failures == background.records[task.name].work.failures == 0
    assert (backups.view.state, backups.view.why) == (BackupState.FAILED, "the server stopped")


async def test_destination_that_cannot_be_asked_is_a_failure(
    backups: Backups,
    finishing: Finishing,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No backup can be made there either, so that its alert fires. The log has a line, and
    `jobline backup --status` the reason.
    """

    async def gone(_store: str) -> int:
        raise BackupFailed("the key is not known")

    monkeypatch.setattr(backups, "_finisher", Finisher(finishing.finish, gone))
    with pytest.raises(BackupFailed, match="not known"):
        await backups.find_newest()
    assert (backups.failures, backups.last_success_ms) == (1, None)
    assert (backups.view.state, backups.view.why) == (BackupState.FAILED, "the key is not known")
    (line,) = caplog.records
    assert line.exc_info is None
    assert "the key is not known" in line.getMessage()
    monkeypatch.undo()
    assert await backups.find_newest() == 5
    assert backups.view.state is BackupState.NONE, "nothing is wrong any more"


async def test_destination_that_never_answers_holds_up_no_stop(
    backups: Backups, finishing: Finishing, runtime: Runtime
) -> None:
    """A network that swallows what it is sent. The stop waited for it until the server was killed,
    before anything was folded or closed.
    """
    finishing.asks_hang = True
    task = BackupTask(backups, 3_600)
    background = Background([task], runtime.core)
    running = asyncio.ensure_future(background.run_once(task))
    await finishing.asked.wait()
    async with asyncio.timeout(10):
        await backups.stop()
        await running
        await background.run_once(task)
    with pytest.raises(BackupFailed, match="there did not answer"):
        await backups.find_newest()


async def test_destination_that_never_answers_is_asked_again(
    backups: Backups, finishing: Finishing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts as a failure, which has an alert; and when it answers, backups go on."""
    monkeypatch.setattr(the_module, "ASK_SECONDS", 0.01)
    finishing.asks_hang = True
    with pytest.raises(BackupFailed, match="there did not answer"):
        await backups.find_newest()
    assert backups.failures == 1
    finishing.asks_hang = False
    assert await backups.find_newest() == 5


async def test_backup_by_a_clock_that_was_set_back_is_the_newest(
    backups: Backups, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given one at the destination of a clock that was ahead; then the metric and the next backup
    go by the one just made.
    """
    ahead_ms = 1 << 50

    async def ahead(_store: str) -> int:
        return ahead_ms

    finisher = Finisher(backups._finisher.finish, ahead)
    monkeypatch.setattr(backups, "_finisher", finisher)
    assert await backups.find_newest() == ahead_ms
    backups.begin()
    view = await backups.wait()
    assert backups.last_success_ms == view.at_ms < ahead_ms
