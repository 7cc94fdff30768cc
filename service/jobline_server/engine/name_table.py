"""A table by name, in parts, so that no step copies a large dictionary."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

PARTS = 256


class Named(Protocol):
    """What has a name."""

    name: str


V = TypeVar("V", bound=Named)


class NameTable(Generic[V]):
    """Values by their name."""

    __slots__ = ("_parts", "count")

    def __init__(self) -> None:
        self._parts: dict[int, dict[str, V]] = {}
        self.count = 0

    def __bool__(self) -> bool:
        return self.count > 0

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[V]:
        for part in self._parts.values():
            yield from part.values()

    def find(self, name: str) -> V | None:
        """Returns the value with this name; None without."""
        part = self._parts.get(part_of(name))
        return None if part is None else part.get(name)

    def add(self, value: V) -> None:
        """Adds a value whose name is not in the table."""
        self._parts.setdefault(part_of(value.name), {})[value.name] = value
        self.count += 1

    def remove(self, value: V) -> None:
        """Removes a value."""
        del self._parts[part_of(value.name)][value.name]
        self.count -= 1

    def names(self) -> Iterator[list[str]]:
        """Yields all names, part by part."""
        for part in list(self._parts.values()):
            yield list(part)


def part_of(name: str) -> int:
    """Returns the part of a name: not its hash, which differs from one process to the next."""
    return zlib.crc32(name.encode()) % PARTS
