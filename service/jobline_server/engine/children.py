"""The jobs that wait for one job. They may be a hundred thousand, so they are kept in parts: a full
dictionary is copied as a whole, and several of one size would be copied in the same push.
"""

from __future__ import annotations

from collections.abc import Iterator

# A part has the ids that differ in these bits: up to 128, of which a copy takes 2 µs. A push may
# make a thousand of them full.
PART_BITS = 7


class Children:
    """Ids of jobs, in the order of their pushes."""

    __slots__ = ("_count", "_parts")

    def __init__(self) -> None:
        self._count = 0
        self._parts: dict[int, dict[int, None]] = {}

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        for part in self._parts.values():
            yield from part

    def add(self, child: int) -> None:
        """Adds a job that is not there yet."""
        part = self._parts.get(child >> PART_BITS)
        if part is None:
            self._parts[child >> PART_BITS] = {child: None}
        else:
            part[child] = None
        self._count += 1

    def remove(self, child: int) -> None:
        """Removes a job; raises KeyError for one that is not there."""
        number = child >> PART_BITS
        part = self._parts[number]
        del part[child]
        self._count -= 1
        if not part:
            del self._parts[number]
