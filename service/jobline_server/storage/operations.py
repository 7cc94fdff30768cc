"""The interface of the operation store: what operators did, for those who look later.

Operations are written through the ended store, as ended jobs are (`PutOperation`), and are as
durable as these: the journal has them until the ended store is synced. Here they are read, and the
old ones deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from jobline_server.engine.operations import OperationQuery


class OperationRow(NamedTuple):
    """An operation: what it can be found by, and the whole as bytes. `ended_ms` is 0 until it is
    over; `undoes` is the operation that it undid, once it has, or "".
    """

    id: str
    began_ms: int
    ended_ms: int
    principal: str
    verb: str
    queue: str
    undoes: str
    blob: bytes


class FoundOperation(NamedTuple):
    """An operation that is kept, its place in the order of commits, and the one that undid it, or
    "".
    """

    number: int
    blob: bytes
    undone_by: str


class OperationStore(Protocol):
    """Operations, the newest first."""

    async def find(self, query: OperationQuery) -> Sequence[FoundOperation]:
        """Returns a page of operations."""

    async def delete_old(self, before_ms: int, kept_max: int, limit: int) -> int:
        """Deletes up to `limit` operations that began earlier, or that `kept_max` others are newer
        than; returns how many.
        """


class _NoOperations:
    """Keeps nothing."""

    async def find(self, _query: OperationQuery) -> Sequence[FoundOperation]:
        """See `OperationStore.find`."""
        return ()

    async def delete_old(self, _before_ms: int, _kept_max: int, _limit: int) -> int:
        """See `OperationStore.delete_old`."""
        return 0


NO_OPERATIONS: OperationStore = _NoOperations()
