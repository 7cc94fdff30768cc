"""Backups as the runtime makes them, on real files and without another process."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from jobline_server.background.backups import BackupTask
from jobline_server.background.periodic import Background
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.runtime import backup_destination
from jobline_server.runtime.backup_destination import (
    BackupFailed,
    CopyToFinish,
    Finisher,
    Step,
)
from jobline_server.runtime.backup_folders import name_of
from jobline_server.runtime.backups import Backups, BackupSettings, BackupState
from jobline_server.runtime.runtime import Runtime
from jobline_server.storage.sqlite.copying import DirectoryCopies
from jobline_server.storage.sqlite.ended_store import SqliteEndedJobStore
from jobline_server.storage.sqlite.store import SqliteStore


class Finishing:
    """Stands for the other process: notes what it is given, and fails if it is told to."""

    def __init__(self) -> None:
        self.given: list[CopyToFinish] = []
        self.fails = False
        self.step = "sending"
        self.asked = asyncio.Event()
        self.sending = asyncio.Event()
        self.hangs = False
        self.asks_hang = False
        self.newest: int | BackupFailed = 5
        self.taken_away: list[tuple[str, ...]] = []

    async def finish(self, copy: CopyToFinish, note: Step) -> int:
        """Takes a copy."""
        note(self.step, 1, 2)
        self.given.append(copy)
        self.sending.set()
        if self.hangs:
            await asyncio.Event().wait()
        if self.fails:
            raise BackupFailed("the destination is gone")
        return 7

    async def newest_ms(self, _store: str, _until_name: str) -> int:
        """Returns a time of long ago, or what is set."""
        self.asked.set()
        if self.asks_hang:
            await asyncio.Event().wait()
        if isinstance(self.newest, BackupFailed):
            raise self.newest
        return self.newest

    async def take_away(self, copies: Path, names: tuple[str, ...]) -> int:
        """Notes it, and removes their folders."""
        self.taken_away.append(names)
        for name in names:
            (copies / name).rmdir()
        return len(names)


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
    settings = BackupSettings(tmp_path / "backup", "there", spare_bytes=0, is_near=True)
    finisher = Finisher(finishing.finish, finishing.newest_ms, finishing.take_away)
    return Backups(runtime.core, copies, settings, finisher)


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


async def test_reason_of_a_failure_is_shown_until_a_backup_is_whole(
    backups: Backups, finishing: Finishing
) -> None:
    """Also while the next try is under way: of a large store that is most of the time."""
    finishing.fails = True
    backups.begin()
    failed = await backups.wait()
    finishing.fails = False
    assert backups.begin().why == failed.why == "the destination is gone"
    assert (await backups.wait()).why == ""
    assert backups.begin().why == ""
    await backups.wait()


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
    backups: Backups, finishing: Finishing, caplog: pytest.LogCaptureFixture
) -> None:
    """No backup can be made there either, so that its alert fires. The log has a line, and
    `jobline backup --status` the reason.
    """
    finishing.newest = BackupFailed("the key is not known")
    with pytest.raises(BackupFailed, match="not known"):
        await backups.find_newest()
    assert (backups.failures, backups.last_success_ms) == (1, None)
    assert (backups.view.state, backups.view.why) == (BackupState.FAILED, "the key is not known")
    (line,) = caplog.records
    assert line.exc_info is None
    assert "the key is not known" in line.getMessage()
    finishing.newest = 5
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
    monkeypatch.setattr(backup_destination, "ASK_SECONDS", 0.01)
    finishing.asks_hang = True
    with pytest.raises(BackupFailed, match="there did not answer"):
        await backups.find_newest()
    assert backups.failures == 1
    finishing.asks_hang = False
    assert await backups.find_newest() == 5


async def test_backup_by_a_clock_that_was_set_back_is_the_newest(
    backups: Backups, finishing: Finishing
) -> None:
    """Given one at the destination of a clock that was ahead; then the metric and the next backup
    go by the one just made.
    """
    finishing.newest = ahead_ms = 1 << 50
    assert await backups.find_newest() == ahead_ms
    backups.begin()
    view = await backups.wait()
    assert backups.last_success_ms == view.at_ms < ahead_ms


def half_a_backup(data: Path) -> str:
    """Leaves what a kill leaves of a backup in a data directory; returns its name."""
    name = name_of(1_777_777_777_042, "0123456789abcdef")
    (data / "backup" / name).mkdir(parents=True)
    (data / "backup" / name / "jobline.db").write_bytes(b"half")
    return name


async def test_what_a_kill_left_is_taken_away_at_the_start(
    backups: Backups, finishing: Finishing, tmp_path: Path
) -> None:
    """It took the room of the store until the next backup, and of a server that makes them on
    request only, for good. The copy goes even if the destination does not answer.
    """
    name = half_a_backup(tmp_path)
    finishing.newest = BackupFailed("it is gone")
    with pytest.raises(BackupFailed):
        await backups.find_newest()
    assert [path.name for path in (tmp_path / "backup").rglob("*")] == [name]
    finishing.newest = 5
    assert await backups.find_newest() == 5
    assert finishing.taken_away == [(name,)]
    assert not (tmp_path / "backup").exists()


async def test_a_backup_under_way_is_not_taken_for_a_half_one(
    backups: Backups, finishing: Finishing, tmp_path: Path
) -> None:
    """Given one that an operator has begun before the destination was asked; then its copy stays,
    and it takes away itself what was left.
    """
    name = half_a_backup(tmp_path)
    finishing.hangs = True
    backups.begin()
    async with asyncio.timeout(20):
        await finishing.sending.wait()
        assert await backups.find_newest() == 5
    assert (finishing.given[0].folder / "jobline.db").stat().st_size > len("half")
    assert (finishing.given[0].unfinished, finishing.taken_away) == ((name,), [])
    await backups.stop()


async def test_what_a_stop_cuts_off_is_taken_away(
    backups: Backups, finishing: Finishing, tmp_path: Path
) -> None:
    """What was sent, too, from a directory."""
    finishing.hangs = True
    backups.begin()
    async with asyncio.timeout(20):
        await finishing.sending.wait()
        await backups.stop()
    assert finishing.taken_away == [(backups.view.name,)]
    assert not (tmp_path / "backup").exists()


async def test_failures_before_anything_was_sent_leave_nothing(
    backups: Backups, finishing: Finishing, tmp_path: Path
) -> None:
    """A destination that is away for days left an empty folder each minute, and each of them was
    looked for there when it was back.
    """
    finishing.step = "reading"
    finishing.fails = True
    for _ in range(3):
        backups.begin()
        assert (await backups.wait()).state is BackupState.FAILED
    assert list((tmp_path / "backup").iterdir()) == []
