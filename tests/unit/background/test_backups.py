"""When backups are made, and how often a destination that does not answer is asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from jobline_server.background.backups import RETRY_MS, BackupTask
from jobline_server.background.periodic import KnownFailure
from jobline_server.engine.values import Now
from jobline_server.runtime.backup_destination import BackupFailed
from jobline_server.runtime.backups import Backups, BackupState, BackupView

HOUR_MS = 3_600_000


@dataclass
class Destination:
    """Stands for what makes backups: `newest_ms` None cannot be asked."""

    newest_ms: int | None = 0
    last_success_ms: int | None = None
    asked: int = 0
    made: list[int] = field(default_factory=list)
    now_ms: int = 0
    fails: bool = False
    is_stopping: bool = False
    stops_at_once: bool = False

    async def find_newest(self) -> int:
        """Returns when the newest was made."""
        if self.last_success_ms is None:
            self.asked += 1
            self.is_stopping = self.stops_at_once and self.newest_ms is None
            if self.newest_ms is None:
                raise BackupFailed("it is gone")
            self.last_success_ms = self.newest_ms
        return self.last_success_ms

    def begin(self) -> None:
        """Makes one."""
        self.made.append(self.now_ms)

    async def wait(self) -> BackupView:
        """Returns it."""
        self.is_stopping = self.stops_at_once
        if self.fails:
            return BackupView(BackupState.FAILED, why="it is full")
        self.last_success_ms = self.now_ms
        return BackupView(BackupState.WHOLE)

    async def after(self, task: BackupTask, ms: int) -> int:
        """Runs the task later; returns how many it made."""
        self.now_ms += ms
        counts = await task.run_once(Now(self.now_ms, self.now_ms))
        return 0 if counts is None else counts["made"]

    async def is_known_to_work(self, task: BackupTask) -> bool:
        """Runs the task now, when none is to be made; returns whether that counts as a success."""
        counts = await task.run_once(Now(self.now_ms, self.now_ms))
        assert counts is None or counts == {"made": 0}
        return counts is not None


@pytest.fixture
def destination() -> Destination:
    return Destination(now_ms=100 * HOUR_MS)


def task_of(destination: Destination) -> BackupTask:
    return BackupTask(cast("Backups", cast("Any", destination)), 3_600)


async def test_backups_are_made_as_often_as_the_settings_say(destination: Destination) -> None:
    task = task_of(destination)
    assert await destination.after(task, 0) == 1
    assert await destination.after(task, HOUR_MS - 1) == 0
    assert await destination.after(task, 1) == 1
    assert destination.asked == 1


async def test_destination_that_does_not_answer_is_asked_once_a_minute(
    destination: Destination,
) -> None:
    """Each time takes a process; it was once a second. When it answers, a due backup is made at
    once.
    """
    destination.newest_ms = None
    task = task_of(destination)
    with pytest.raises(KnownFailure, match="it is gone"):
        await destination.after(task, 0)
    for _ in range(3):
        assert await destination.after(task, 1_000) == 0
    assert destination.asked == 1
    destination.newest_ms = 0
    assert await destination.after(task, RETRY_MS) == 1
    assert destination.asked == 2


async def test_backup_that_failed_is_tried_again_after_a_minute(destination: Destination) -> None:
    destination.fails = True
    task = task_of(destination)
    with pytest.raises(KnownFailure, match="it is full"):
        await destination.after(task, 0)
    assert await destination.after(task, RETRY_MS - 1) == 0
    destination.fails = False
    assert await destination.after(task, 1) == 1


async def test_clock_that_was_ahead_stops_no_backups(destination: Destination) -> None:
    """Given a backup by a clock that was a year ahead; then one is made as soon as it is set right,
    and the next an hour later: none was made for a year, or after a restart one each minute.
    """
    task = task_of(destination)
    year_ms = 365 * 24 * HOUR_MS
    assert await destination.after(task, year_ms) == 1
    assert await destination.after(task, -year_ms) == 1
    assert await destination.after(task, RETRY_MS) == 0
    assert await destination.after(task, HOUR_MS - RETRY_MS) == 1


async def test_only_a_backup_that_was_made_ends_a_row_of_failures(
    destination: Destination,
) -> None:
    """A run in which none was due counted as a success, a second after each failure: the metric and
    its alert never saw two in a row.
    """
    destination.fails = True
    task = task_of(destination)
    for _ in range(2):
        with pytest.raises(KnownFailure):
            await destination.after(task, RETRY_MS)
        assert not await destination.is_known_to_work(task)
    destination.last_success_ms = destination.now_ms  # an operator had one made
    assert await destination.is_known_to_work(task)
    assert await destination.after(task, HOUR_MS - 1) == 0
    assert await destination.is_known_to_work(task)


async def test_destination_that_answers_again_works_if_a_backup_of_late_is_there(
    destination: Destination,
) -> None:
    """Nothing is wrong any more, though the next one may be due in a day."""
    destination.newest_ms = None
    task = task_of(destination)
    with pytest.raises(KnownFailure):
        await destination.after(task, 0)
    assert not await destination.is_known_to_work(task)
    destination.newest_ms = destination.now_ms
    destination.now_ms += RETRY_MS
    assert await destination.is_known_to_work(task)


@pytest.mark.parametrize("newest_ms", [None, 0])
async def test_what_a_stop_cuts_off_is_no_failure(
    destination: Destination, newest_ms: int | None
) -> None:
    """Neither of a backup, nor of the question when the newest was made. It was logged with a
    stack, as a fault of the server.
    """
    destination.newest_ms, destination.fails = newest_ms, True
    task = task_of(destination)
    destination.stops_at_once = True
    assert not await destination.is_known_to_work(task)
    assert await task.run_once(Now(destination.now_ms + HOUR_MS, 0)) is None
    assert destination.asked == 1
