"""Small chores: empty queues vanish, old streams are asked to move, the ballast is set up again."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.background.periodic import Counts
from jobline_server.engine.values import Now
from jobline_server.runtime.calls.streams import Streams
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.disk_space import Room
from jobline_server.runtime.idle_queues import delete_idle_queues


@dataclass(frozen=True, slots=True)
class DeleteIdleQueues:
    """Deletes queues that were empty for an hour and have nothing of their own."""

    core: Core
    name: str = "empty_queues"
    every_seconds: float = 60.0

    async def run_once(self, _now: Now) -> Counts:
        """Looks at all queues of all shards."""
        return {"vanished": await delete_idle_queues(self.core)}


@dataclass(frozen=True, slots=True)
class SendOldStreamsAway:
    """Asks old streams to move."""

    streams: Streams
    max_age_ms: int
    name: str = "old_streams"
    every_seconds: float = 5.0

    async def run_once(self, _now: Now) -> Counts:
        """Looks at all streams."""
        return {"sent_away": self.streams.send_away_old(self.max_age_ms)}


@dataclass(frozen=True, slots=True)
class RestoreBallast:
    """Watches the disk: refuses pushes while the reserve is gone, makes room, sets it up again."""

    room: Room
    name: str = "space"
    every_seconds: float = 1.0

    async def run_once(self, _now: Now) -> Counts:
        """Pushes are taken again when the reserve stands."""
        return {"full": int(await self.room.look())}
