"""What a backend gives the runtime: `stores_in` of `storage/sqlite/directory.py` makes one."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.storage.copies import StoreCopies
from jobline_server.storage.ended_store import EndedJobStore
from jobline_server.storage.minutes import NO_MINUTES, MinuteStore
from jobline_server.storage.operations import NO_OPERATIONS, OperationStore
from jobline_server.storage.space import NO_SPACE, Space
from jobline_server.storage.store import Store


@dataclass(frozen=True, slots=True)
class Stores:
    """The store of shards, the store of their ended jobs, the room that both share, minutes of
    queues, operations of operators, and what copies all that while it is in use.
    """

    store: Store
    ended_store: EndedJobStore
    space: Space = NO_SPACE
    minutes: MinuteStore = NO_MINUTES
    operations: OperationStore = NO_OPERATIONS
    copies: StoreCopies | None = None

    async def close(self) -> None:
        """Closes both stores; may be called twice, or before they are open."""
        try:
            await self.ended_store.close()
        finally:
            await self.store.close()
