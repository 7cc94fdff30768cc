"""Periodic task: makes a backup as often as the settings say."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.background.periodic import Counts, KnownFailure
from jobline_server.engine.commands import Refused
from jobline_server.engine.values import Now
from jobline_server.runtime.backup_destination import BackupFailed
from jobline_server.runtime.backups import Backups, BackupState

# After a failure a backup is tried, and the destination asked, again this soon, at most.
RETRY_MS = 60_000


@dataclass(slots=True)
class BackupTask:
    """Looks once when the newest backup was made, then makes those that are due. `period_seconds`
    0: makes none.
    """

    backups: Backups
    period_seconds: int
    name: str = "backup"
    every_seconds: float = 1.0
    _asked_ms: int = 0
    _tried_ms: int = 0

    async def run_once(self, now: Now) -> Counts | None:
        """Makes a backup if one is due; returns how many were made: 0 only while the newest one is
        no older than it may be, whoever had it made. One that fails is a failure of the task, too.
        """
        newest_ms = await self._newest_ms(now.wall_ms)
        if newest_ms is None:
            return None
        if self._is_recent(newest_ms, now.wall_ms):
            return {"made": 0}
        return await self._make(now.wall_ms)

    async def _newest_ms(self, now_ms: int) -> int | None:
        """Returns when the newest backup was made; None while that is not known."""
        if self.backups.last_success_ms is None:
            # A destination that cannot be asked is asked by another process each time.
            if self.backups.is_stopping or 0 <= now_ms - self._asked_ms < RETRY_MS:
                return None
            self._asked_ms = now_ms
        try:
            return await self.backups.find_newest()
        except BackupFailed as failure:
            self._failed(str(failure))
            return None

    async def _make(self, now_ms: int) -> Counts | None:
        # A try in the future was before a clock was set back, and says nothing.
        since_try_ms = now_ms - self._tried_ms
        if 0 <= since_try_ms < min(RETRY_MS, self._period_ms):
            return None
        self._tried_ms = now_ms
        try:
            self.backups.begin()
        except Refused:  # an operator has begun one, or the server stops
            return None
        view = await self.backups.wait()
        if view.state is BackupState.FAILED:
            self._failed(view.why)
            return None
        return {"made": 1}

    def _failed(self, why: str) -> None:
        """Raises `KnownFailure`, unless the server stops: what that cuts off has not failed."""
        if not self.backups.is_stopping:
            raise KnownFailure(why)

    def _is_recent(self, newest_ms: int, now_ms: int) -> bool:
        # A clock that was set back makes none due, and one in the future is as none.
        return not self._period_ms or 0 <= now_ms - newest_ms < self._period_ms

    @property
    def _period_ms(self) -> int:
        return self.period_seconds * 1_000
