"""Kinds whose items are written one by one: each item is a value of the shard that has an id.

The shard notes ids to write and item keys to delete (`engine/changes.py`). Removals come first:
what has come back since, as a job that is retried by hand does, is written over its removal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from jobline_server.engine.changes import KindChanges
from jobline_server.engine.shard import Shard
from jobline_server.storage.kinds.table import (
    BYTES_AN_ITEM,
    PAYLOADS_AN_ITEM,
    REMOVALS_AN_ITEM,
    KindSlices,
    Slice,
)
from jobline_server.storage.segments import KeySegments
from jobline_server.storage.store import ItemKind, ItemRow

K = TypeVar("K")
V = TypeVar("V")

Save = Callable[[Shard, K, V], tuple[int, bytes]]
"""The item key and the blob of a value, which is `stored` from now on."""
Weigh = Callable[[V], tuple[int, int]]
"""How many payloads a value holds, and how many bytes they have at most."""


def by_id(
    kind: ItemKind,
    *,
    owner: Callable[[Shard], Mapping[K, V]],
    changes: Callable[[Shard], KindChanges[Any]],
    save: Save[K, V],
    weigh: Weigh[V] | None = None,
) -> Callable[[Shard, KeySegments], KindSlices]:
    """Returns the `slices` of a kind. `owner` is where the shard has its values by id, `changes`
    where it notes them; `weigh` is for values that cost more than an item and their blob.
    """

    def slices(shard: Shard, _segments: KeySegments) -> KindSlices:
        return SlicesById(kind, shard, owner(shard), changes(shard), save, weigh)

    return slices


class SlicesById(KindSlices):
    """The slices of such a kind."""

    __slots__ = (
        "_changes",
        "_deleted",
        "_kind",
        "_save",
        "_shard",
        "_values",
        "_weigh",
        "_written",
    )

    def __init__(
        self,
        kind: ItemKind,
        shard: Shard,
        values: Mapping[Any, Any],
        changes: KindChanges[Any],
        save: Save[Any, Any],
        weigh: Weigh[Any] | None,
    ) -> None:
        self._kind = kind
        self._shard = shard
        self._values = values
        self._changes = changes
        self._save = save
        self._weigh = weigh
        self._written: list[Any] = []
        self._deleted: list[int] = []

    def noted(self) -> int:
        """See `KindSlices`."""
        return len(self._changes.to_write) + len(self._changes.to_delete)

    def cost(self) -> int:
        """See `KindSlices`."""
        if self._weigh is None:
            return self.noted()
        weights = [self._weigh(self._values[one]) for one in self._changes.to_write]
        payloads = sum(count for count, _ in weights)
        size = sum(size for _, size in weights)
        return self.noted() + payloads // PAYLOADS_AN_ITEM + size // BYTES_AN_ITEM

    def take(self, piece: Slice) -> None:
        """See `KindSlices`."""
        self._take_deleted(piece)
        if not self._changes.to_delete:
            self._take_changed(piece)

    def give_back(self) -> None:
        """See `KindSlices`."""
        to_write, values = self._changes.to_write, self._values
        for one in self._written:
            if one in values:
                to_write.add(one)
        self._changes.to_delete += self._deleted
        self._written, self._deleted = [], []

    def _take_deleted(self, piece: Slice) -> None:
        to_delete = self._changes.to_delete
        if piece.budget <= 0 or not to_delete:
            return
        most = max(int(min(piece.budget * REMOVALS_AN_ITEM, len(to_delete))), 1)
        chunk = to_delete[-most:]
        del to_delete[-most:]
        self._deleted += chunk
        piece.budget -= len(chunk) / REMOVALS_AN_ITEM
        piece.removals += [(self._kind, key) for key in chunk]

    def _take_changed(self, piece: Slice) -> None:
        """The longest loop of a slice: no call of ours per item but `save`."""
        shard, kind, to_write = self._shard, self._kind, self._changes.to_write
        values, save, weigh = self._values, self._save, self._weigh
        number, rows, written, budget = shard.number, piece.rows, self._written, piece.budget
        while budget > 0 and to_write:
            one = to_write.pop()
            written.append(one)
            value = values[one]
            key, blob = save(shard, one, value)
            rows.append(ItemRow(number, kind, key, blob))
            budget -= 1 + len(blob) // BYTES_AN_ITEM
            if weigh is not None:
                budget -= weigh(value)[0] // PAYLOADS_AN_ITEM
        piece.budget = budget
