"""Periodic tasks: delete idle queues, ask old streams to reconnect, restore the ballast."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.background.periodic import Counts
from jobline_server.engine.values import Now
from jobline_server.runtime.calls.streams import Streams
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.disk_space import DiskSpace
from jobline_server.runtime.idle_queues import delete_idle_queues, next_idle_ms


@dataclass(frozen=True, slots=True)
class DeleteIdleQueues:
    """Deletes queues that were empty for an hour, have no settings and are not paused."""

    core: Core
    name: str = "empty_queues"
    every_seconds: float = 60.0

    async def run_once(self, _now: Now) -> Counts:
        """Checks all queues of all shards; returns how many were deleted."""
        return {"vanished": await delete_idle_queues(self.core)}

    async def next_ms(self, _now: Now) -> int | None:
        """Returns when the next queue was empty for an hour."""
        return next_idle_ms(self.core)


@dataclass(frozen=True, slots=True)
class SendOldStreamsAway:
    """Asks streams older than `max_age_ms` to reconnect."""

    streams: Streams
    max_age_ms: int
    name: str = "old_streams"
    every_seconds: float = 5.0

    async def run_once(self, _now: Now) -> Counts:
        """Checks all streams; returns how many were sent a goaway."""
        return {"sent_away": await self.streams.send_away_old(self.max_age_ms)}


@dataclass(frozen=True, slots=True)
class RestoreBallast:
    """Refuses pushes while the ballast is gone, and restores it once the disk has room."""

    space: DiskSpace
    name: str = "space"
    every_seconds: float = 1.0

    async def run_once(self, _now: Now) -> Counts:
        """Checks the disk; returns whether it is full."""
        return {"full": int(await self.space.make_room())}
