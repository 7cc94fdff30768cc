"""What a failed commit means for the shards that it names.

    fenced    another process writes the shard now, and nothing was stored: its slot is closed
    unknown   the store is asked: a row that is stored is committed, one that is not is written
              again; if the store cannot know either, the slot is closed

The other shards go on: their rows are written again. An error that names no shard concerns all of
them, and so does one that would leave no slot open: it is raised, and the process stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from jobline_server.runtime.health import Health
from jobline_server.runtime.slots import ShardSlots
from jobline_server.storage.store import CommitUnknown, Fenced, JournalRow, ShardsFailed, Store

# How soon rows are written again that were not stored.
RETRY_SECONDS = 0.2


class FailedWrites:
    """Finds out what became of rows that could not be written, and closes slots."""

    def __init__(self, store: Store, slots: ShardSlots) -> None:
        self._store = store
        self._slots = slots
        self.retries = True
        """Whether a row that turned out not to be stored is written again; not when the server
        stops.
        """

    async def rows_left(self, rows: Sequence[JournalRow], error: ShardsFailed) -> list[JournalRow]:
        """Returns the rows of a failed commit that are to be written again. Raises the error if the
        process has to stop.
        """
        concerned = [row for row in rows if row.shard in error.shards]
        if isinstance(error, CommitUnknown):
            done = [row for row in concerned or rows if await self._is_over(row, error)]
        elif concerned:
            done = concerned
            for row in concerned:
                self.close(row.shard, Health.FENCED, error)
        else:
            raise error
        left = [row for row in rows if row not in done]
        if left and isinstance(error, CommitUnknown):
            if not self.retries:
                raise error
            await asyncio.sleep(RETRY_SECONDS)
        return left

    async def _is_over(self, row: JournalRow, unknown: CommitUnknown) -> bool:
        """Asks what became of a row; returns whether it is stored or its slot closed. Raises the
        error if nobody knows, and it names no shards.
        """
        if row.shard not in self._slots:
            return True
        slot = self._slots[row.shard]
        slot.health = Health.UNKNOWN
        try:
            stored = await self._store.resolve(row.shard, row.epoch, row.offset, row.chain)
        except Fenced as fenced:
            self.close(row.shard, Health.FENCED, fenced)
            return True
        except CommitUnknown:
            if not unknown.shards:
                raise unknown from None
            self.close(row.shard, Health.UNKNOWN, unknown)
            return True
        slot.health = Health.OPEN
        return stored

    def close(self, number: int, health: Health, error: Exception) -> None:
        """Closes a slot, if it is open. Raises the error if no slot is left then."""
        if number in self._slots:
            self._slots.close(self._slots[number], health, str(error))
        if not self._slots:
            raise error
