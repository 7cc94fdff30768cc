"""The jobs that wait for one job. Most jobs have one, which needs no dictionary. They may be a
hundred thousand, so they are kept in parts: a full dictionary is copied as a whole, and several of
one size would be copied in the same push.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

# A part has the ids that differ in these bits: up to 128, of which a copy takes 2 µs. A push may
# make a thousand of them full.
PART_BITS = 7

Parts = list[tuple[int, dict[int, None]]]


def in_parts(children: Iterable[int]) -> Parts:
    """Returns the ids of each part, with its number, so that they are added to the children of many
    jobs without a look at each.
    """
    parts: dict[int, dict[int, None]] = {}
    for child in children:
        part = parts.get(child >> PART_BITS)
        if part is None:
            parts[child >> PART_BITS] = {child: None}
        else:
            part[child] = None
    return [*parts.items()]


class Children:
    """Ids of jobs, in the order of their pushes."""

    __slots__ = ("_count", "_only", "_parts")

    def __init__(self) -> None:
        self._count = 0
        # Either the one that was the first and is alone, or all others.
        self._only: int | None = None
        self._parts: dict[int, dict[int, None]] | None = None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        if self._only is not None:
            yield self._only
        for part in (self._parts or {}).values():
            yield from part

    def add(self, child: int) -> None:
        """Adds a job that is not there yet."""
        if self._parts is None and self._only is None:
            self._only, self._count = child, 1
        else:
            self.add_parts([(child >> PART_BITS, {child: None})])

    def add_parts(self, added: Parts) -> None:
        """Adds jobs that are not there yet."""
        parts = self._parts
        if parts is None:
            parts = self._parts = {}
            if self._only is not None:
                parts[self._only >> PART_BITS] = {self._only: None}
                self._only = None
        for number, children in added:
            part = parts.get(number)
            if part is None:
                parts[number] = children.copy()
            else:
                part |= children
            self._count += len(children)

    def remove(self, child: int) -> None:
        """Removes a job; raises KeyError for one that is not there."""
        if child == self._only:
            self._only, self._count = None, 0
            return
        parts = self._parts or {}
        part = parts[child >> PART_BITS]
        del part[child]
        self._count -= 1
        if not part:
            del parts[child >> PART_BITS]
