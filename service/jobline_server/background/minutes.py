"""Periodic task: keeps what happened in each minute that is over, for 14 days."""

from __future__ import annotations

from dataclasses import dataclass, field

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
    _closed: int = field(default=0, init=False)

    @property
    def every_seconds(self) -> float:
        """The pause until the next minute begins."""
        left_ms = MINUTE_MS - self.core.clock.now().wall_ms % MINUTE_MS
        return (left_ms + LATE_MS) / SECOND_MS

    async def run_once(self, now: Now) -> Counts:
        """Keeps the last minute and deletes old ones; returns counts of queues and of rows."""
        minute = now.wall_ms // MINUTE_MS - 1
        if self.core.commits.disk_full or minute == self._closed:
            # Again, where a clock stands still: what happened since is of the minute that goes on.
            return {}
        closed = await self.minutes.close_minute(minute)
        self._closed = minute
        return {"queues": closed, "deleted": await self.minutes.delete_old(minute)}

    async def next_ms(self, now: Now) -> int | None:
        """Returns the end of this minute; None if nothing has happened in it or the last one."""
        if not self.minutes.has_news():
            return None
        return (now.wall_ms // MINUTE_MS + 1) * MINUTE_MS
