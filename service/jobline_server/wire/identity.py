"""A bounded memory of what was made from an object, found by the object's identity.

Hashing a frozen value of nine fields costs more than most of what is made from it; shared values
are found faster by who they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class IdentityCache(Generic[K, V]):
    """Remembers `make(key)` for up to `entries_max` keys. A key that is remembered is kept alive,
    so its identity cannot pass to another; over the limit everything is forgotten at once."""

    __slots__ = ("_entries", "_entries_max", "_make")

    def __init__(self, make: Callable[[K], V], *, entries_max: int) -> None:
        self._make = make
        self._entries_max = entries_max
        self._entries: dict[int, tuple[K, V]] = {}

    def get(self, key: K) -> V:
        """What was made from this very object, made now if need be."""
        entry = self._entries.get(id(key))
        if entry is not None:
            return entry[1]
        made = self._make(key)
        if len(self._entries) >= self._entries_max:
            self._entries.clear()
        self._entries[id(key)] = (key, made)
        return made

    def __len__(self) -> int:
        return len(self._entries)
