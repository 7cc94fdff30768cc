"""A bounded cache of values made from objects, keyed by the identity of the object.

Hashing a frozen value of nine fields costs more than most of the values made from it; for shared
objects a look-up by identity is faster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class IdentityCache(Generic[K, V]):
    """Caches `make(key)` for up to `entries_max` keys. A cached key is kept alive, so its identity
    cannot pass to another object. At the limit all entries are dropped at once.
    """

    __slots__ = ("_entries", "_entries_max", "_make")

    def __init__(self, make: Callable[[K], V], *, entries_max: int) -> None:
        self._make = make
        self._entries_max = entries_max
        self._entries: dict[int, tuple[K, V]] = {}

    def get(self, key: K) -> V:
        """Returns the value made from this very object; makes it the first time."""
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
