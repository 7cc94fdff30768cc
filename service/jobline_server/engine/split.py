"""Dictionaries and sets that grow in small steps.

A full dictionary is copied into a larger one at once, which blocks the loop at a million entries.
Here the entries are spread over many small ones, which grow at different times.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, MutableMapping, MutableSet
from itertools import chain
from typing import Generic, TypeVar

V = TypeVar("V")
P = TypeVar("P", bound=Collection[bytes])

PARTS = 256


class _Split(Generic[P]):
    """The base of split dictionaries and sets: parts by the first byte of a key."""

    __slots__ = ("parts",)

    def __init__(self, part: Callable[[], P]) -> None:
        self.parts = [part() for _ in range(PARTS)]

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(self.parts)

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __bool__(self) -> bool:
        return any(self.parts)


class SplitDict(_Split[dict[bytes, V]], MutableMapping[bytes, V]):
    """A dictionary for keys whose first byte is as good as random. For many look-ups, use the part
    of a key directly: `parts[key[0]]`.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(dict)

    def __getitem__(self, key: bytes) -> V:
        return self.parts[key[0]][key]

    def __setitem__(self, key: bytes, value: V) -> None:
        self.parts[key[0]][key] = value

    def __delitem__(self, key: bytes) -> None:
        del self.parts[key[0]][key]


class SplitSet(_Split[set[bytes]], MutableSet[bytes]):
    """A set for keys whose first byte is as good as random."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(set)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, bytes) and key in self.parts[key[0]]

    def add(self, key: bytes) -> None:
        """Adds a key."""
        self.parts[key[0]].add(key)

    def discard(self, key: bytes) -> None:
        """Removes a key if present."""
        self.parts[key[0]].discard(key)

    def pop(self) -> bytes:
        """Removes and returns any key; raises KeyError if the set is empty."""
        for part in self.parts:
            if part:
                return part.pop()
        raise KeyError("it is empty")
