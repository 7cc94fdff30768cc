"""A table by name, in parts, so that no step copies a large dictionary."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

PARTS = 256
# Up to so many names are in one dictionary, which is faster by half; parting them takes 3 ms.
UNPARTED_MAX = 8_192


class Named(Protocol):
    """What has a name."""

    name: str


V = TypeVar("V", bound=Named)


class NameTable(Generic[V]):
    """Values by their name."""

    __slots__ = ("_parts", "_unparted", "count")

    def __init__(self) -> None:
        # All values as long as they are few; None once they are in parts.
        self._unparted: dict[str, V] | None = {}
        self._parts: dict[int, dict[str, V]] = {}
        self.count = 0

    def __bool__(self) -> bool:
        return self.count > 0

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[V]:
        for part in self._all_parts():
            yield from part.values()

    def find(self, name: str) -> V | None:
        """Returns the value with this name; None without."""
        part = self._unparted
        if part is None:
            part = self._parts.get(part_of(name))
        return None if part is None else part.get(name)

    def add(self, value: V) -> None:
        """Adds a value whose name is not in the table."""
        if self._unparted is not None and self.count == UNPARTED_MAX:
            self._part()
        self._part_for(value.name)[value.name] = value
        self.count += 1

    def remove(self, value: V) -> None:
        """Removes a value."""
        del self._part_for(value.name)[value.name]
        self.count -= 1

    def names(self) -> Iterator[list[str]]:
        """Yields all names, part by part."""
        for part in list(self._all_parts()):
            yield list(part)

    def _all_parts(self) -> Iterable[dict[str, V]]:
        return self._parts.values() if self._unparted is None else (self._unparted,)

    def _part_for(self, name: str) -> dict[str, V]:
        if self._unparted is not None:
            return self._unparted
        return self._parts.setdefault(part_of(name), {})

    def _part(self) -> None:
        values, self._unparted = self._unparted or {}, None
        for name, value in values.items():
            self._part_for(name)[name] = value


def part_of(name: str) -> int:
    """Returns the part of a name: not its hash, which differs from one process to the next."""
    return zlib.crc32(name.encode()) % PARTS
