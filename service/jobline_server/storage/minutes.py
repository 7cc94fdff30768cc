"""The interface of the minute store: what happened in each queue, minute by minute.

It is what operators look at, and no promise: a crash may lose the last minutes, and a store may
keep none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from jobline_server.telemetry.queue_minutes import QueueMinute


class MinuteStore(Protocol):
    """Minutes by queue."""

    async def add(self, minutes: Sequence[QueueMinute]) -> None:
        """Writes minutes; one that is there already is replaced."""

    async def find(self, queue: str, first: int, last: int, limit: int) -> Sequence[QueueMinute]:
        """Returns the minutes of a queue from `first` to `last`, the earliest first."""

    async def delete_before(self, minute: int, limit: int) -> int:
        """Deletes up to `limit` rows of earlier minutes; returns how many."""


class _NoMinutes:
    """Keeps nothing."""

    async def add(self, minutes: Sequence[QueueMinute]) -> None:
        """See `MinuteStore.add`."""

    async def find(
        self, _queue: str, _first: int, _last: int, _limit: int
    ) -> Sequence[QueueMinute]:
        """See `MinuteStore.find`."""
        return ()

    async def delete_before(self, _minute: int, _limit: int) -> int:
        """See `MinuteStore.delete_before`."""
        return 0


NO_MINUTES: MinuteStore = _NoMinutes()
