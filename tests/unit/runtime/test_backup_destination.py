"""What backups have to do with their destination: how long it may take, and what is deleted."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from jobline_server.runtime import backup_destination
from jobline_server.runtime.backup_destination import BackupFailed, Leftovers, Patience
from jobline_server.runtime.backup_folders import name_of

NAME = name_of(1_777_777_777_042, "0123456789abcdef")


class Destination:
    """Stands for the other process: notes what it is to take away, or fails, or hangs."""

    def __init__(self, copies: Path) -> None:
        self.copies = copies
        self.asked: list[tuple[str, ...]] = []
        self.error: Exception | None = None
        self.hangs = False
        copies.joinpath(NAME).mkdir(parents=True)
        copies.joinpath(NAME, "jobline.db").write_bytes(b"half")

    async def take_away(self, copies: Path, names: tuple[str, ...]) -> int:
        """Removes the folders."""
        self.asked.append(names)
        if self.hangs:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error
        for name in names:
            (copies / name).rmdir()
        return len(names)

    def leftovers(self, *, is_near: bool = True) -> Leftovers:
        """Returns what takes away."""
        return Leftovers(self.copies, "there", self.take_away, Patience("there"), is_near=is_near)

    @property
    def left(self) -> list[str]:
        """Returns what is in the folder of copies."""
        return [str(path.relative_to(self.copies)) for path in self.copies.rglob("*")]


@pytest.fixture
def destination(tmp_path: Path) -> Destination:
    return Destination(tmp_path / "backup")


async def forever() -> int:
    await asyncio.Event().wait()
    return 1


async def test_an_answer_is_waited_for_until_a_stop() -> None:
    """And not at all after that."""
    patience = Patience("there")
    waiting = asyncio.ensure_future(patience.wait_for(forever()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    patience.end()
    async with asyncio.timeout(20):
        for answer in (waiting, patience.wait_for(forever())):
            with pytest.raises(BackupFailed, match="there did not answer"):
                await answer


async def test_what_was_sent_is_deleted_once_and_said(
    destination: Destination, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    leftovers = destination.leftovers(is_near=False)
    for _ in range(2):
        await leftovers.delete_sent()
    assert (destination.asked, destination.copies.exists()) == ([(NAME,)], False)
    (line,) = caplog.records
    assert NAME in line.getMessage()


async def test_a_name_is_kept_until_the_destination_has_forgotten_it(
    destination: Destination, caplog: pytest.LogCaptureFixture
) -> None:
    """The next backup tries again."""
    destination.error = BackupFailed("may not delete")
    await destination.leftovers().delete_sent()
    assert destination.left == [NAME]
    assert "may not delete" in caplog.text


async def test_a_stop_waits_for_no_other_machine(destination: Destination) -> None:
    """The copy goes, the rest is for the next start."""
    await destination.leftovers(is_near=False).leave()
    assert (destination.asked, destination.left) == ([], [NAME])


async def test_a_stop_waits_some_seconds_for_a_directory(
    destination: Destination, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that hangs, or fails, holds up no stop."""
    monkeypatch.setattr(backup_destination, "LEAVE_SECONDS", 0.01)
    leftovers = destination.leftovers()
    destination.hangs = True
    async with asyncio.timeout(20):
        await leftovers.leave()
    destination.hangs, destination.error = False, BackupFailed("it is read-only")
    await leftovers.leave()
    assert destination.left == [NAME]
    destination.error = None
    await leftovers.leave()
    assert (len(destination.asked), destination.copies.exists()) == (3, False)


async def test_what_is_being_made_is_left_alone(destination: Destination) -> None:
    """Whoever holds the lock has to do with the copies."""
    leftovers = destination.leftovers()
    async with leftovers.lock:
        await leftovers.delete_copies()
        await leftovers.delete_sent()
    assert sorted(destination.left) == [NAME, f"{NAME}/jobline.db"]
    assert destination.asked == []
