"""Window tables: entries by hash that expire after a window.

An expired entry is not found. That it is still in memory is no state of the shard, so the `forget`
of each table sweeps it without a fact, a slice at a time. Times are those of `Age.at`.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from jobline_server.engine import limits
from jobline_server.engine.split import SplitDict

V = TypeVar("V")


class WindowTable(Generic[V]):
    """Entries by hash, and their hashes by the minute in which they expire."""

    __slots__ = ("_minutes", "records")

    def __init__(self) -> None:
        self.records: SplitDict[V] = SplitDict()
        self._minutes: dict[int, list[bytes]] = {}

    @property
    def has_any(self) -> bool:
        """Whether the table has entries, expired ones included."""
        return bool(self._minutes)

    def is_due(self, aged_ms: int) -> bool:
        """Returns whether `forget` has entries to sweep."""
        return self._due_minute(aged_ms) is not None

    def _due_minute(self, aged_ms: int) -> int | None:
        oldest = min(self._minutes, default=None)
        return oldest if oldest is not None and oldest < aged_ms // limits.MINUTE_MS else None

    def _take_due(self, aged_ms: int, limit: int) -> list[bytes]:
        """Removes up to `limit` hashes from the oldest minute, if it has passed, and returns them
        for `forget` to sweep or to file again.
        """
        oldest = self._due_minute(aged_ms)
        if oldest is None:
            return []
        hashes = self._minutes[oldest]
        taken = hashes[-limit:]
        del hashes[-limit:]
        if not hashes:
            del self._minutes[oldest]
        return taken


def file_under(lists: dict[int, list[bytes]], number: int, key: bytes) -> None:
    """Appends a key to the list of a minute or hour."""
    found = lists.get(number)
    if found is None:
        lists[number] = [key]
    else:
        found.append(key)
