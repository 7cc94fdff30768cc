"""Periodic task: makes a backup as often as the settings say."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.background.periodic import Counts
from jobline_server.engine.commands import Refused
from jobline_server.engine.values import Now
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

    async def run_once(self, now: Now) -> Counts:
        """Makes a backup if one is due; returns how many were made. One that fails is a failure of
        the task, too.
        """
        if self.backups.last_success_ms is None:
            # A destination that cannot be asked is asked by another process each time.
            if 0 <= now.wall_ms - self._asked_ms < RETRY_MS:
                return {"made": 0}
            self._asked_ms = now.wall_ms
        newest_ms = await self.backups.find_newest()
        if not self._is_due(newest_ms, now.wall_ms):
            return {"made": 0}
        self._tried_ms = now.wall_ms
        try:
            self.backups.begin()
        except Refused:  # an operator has begun one
            return {"made": 0}
        view = await self.backups.wait()
        if view.state is BackupState.FAILED:
            raise RuntimeError(f"a backup failed: {view.why}")
        return {"made": 1}

    def _is_due(self, newest_ms: int, now_ms: int) -> bool:
        period_ms = self.period_seconds * 1_000
        # A try in the future was before a clock was set back, and says nothing.
        since_try_ms = now_ms - self._tried_ms
        if not period_ms or 0 <= since_try_ms < min(RETRY_MS, period_ms):
            return False
        # A clock that was set back makes none due, and one in the future is as none.
        return not 0 <= now_ms - newest_ms < period_ms
