"""Periodic task: keeps what happened in each minute that is over, for 14 days."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.background.periodic import Counts
from jobline_server.engine.limits import MINUTE_MS, SECOND_MS
from jobline_server.engine.values import Now
from jobline_server.runtime.core import Core
from jobline_server.runtime.minutes import Minutes

# So that a run that begins a moment early is after the minute, too.
LATE_MS = 50


@dataclass(slots=True)
class CloseMinutes:
    """Closes each minute soon after its end."""

    core: Core
    minutes: Minutes
    name: str = "minutes"

    @property
    def every_seconds(self) -> float:
        """The pause until the next minute begins."""
        left_ms = MINUTE_MS - self.core.clock.now().wall_ms % MINUTE_MS
        return (left_ms + LATE_MS) / SECOND_MS

    async def run_once(self, now: Now) -> Counts:
        """Keeps the last minute and deletes old ones; returns counts of queues and of rows."""
        minute = now.wall_ms // MINUTE_MS - 1
        if self.core.commits.disk_full:
            return {}
        closed = await self.minutes.close_minute(minute)
        return {"queues": closed, "deleted": await self.minutes.delete_old(minute)}
