"""Tables by id that grow in small steps.

A full dict or set is copied as a whole, which blocks the loop for half a second at three million
entries. Ids of a shard are numbered in order and live about as long as their neighbours, so a table
here consists of parts: a dict or set for each `1 << PART_BITS` ids, which takes a few milliseconds
to grow and is dropped when it is empty.

The ids of a batch are mostly in one part. `part_of` returns its number, with which a batch costs as
much as in a single dict; without it, each id is looked up alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, MutableMapping, MutableSet, Sequence
from itertools import chain
from typing import Generic, TypeVar

V = TypeVar("V")
P = TypeVar("P", bound=Collection[int])

PART_BITS = 17


def are_neighbours(ids: Sequence[int]) -> bool:
    """Returns whether distinct ids are consecutive and in order."""
    if len(ids) <= 1:
        return len(ids) == 1
    return ids[-1] - ids[0] == len(ids) - 1 and ids == sorted(ids)


def part_of(ids: Sequence[int], *, in_order: bool = False) -> int | None:
    """Returns the number of the part that holds all these ids; None if there are several. Set
    `in_order` if the ids rise.
    """
    if not ids:
        return None
    low, high = (ids[0], ids[-1]) if in_order else (min(ids), max(ids))
    number = low >> PART_BITS
    return number if high >> PART_BITS == number else None


class _Parts(Generic[P]):
    """The base of tables and sets: parts by number, none of them empty."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: dict[int, P] = {}

    def __len__(self) -> int:
        return sum(map(len, self._parts.values()))

    def __bool__(self) -> bool:
        return bool(self._parts)

    def __iter__(self) -> Iterator[int]:
        for part in self._parts.values():
            yield from part


class IdTable(_Parts[dict[int, V]], MutableMapping[int, V]):
    """Values by id; a value must not be falsy."""

    __slots__ = ()

    def __contains__(self, item_id: object) -> bool:
        return isinstance(item_id, int) and self.find(item_id) is not None

    def __getitem__(self, item_id: int) -> V:
        return self._parts[item_id >> PART_BITS][item_id]

    def __setitem__(self, item_id: int, value: V) -> None:
        number = item_id >> PART_BITS
        part = self._parts.get(number)
        if part is None:
            part = self._parts[number] = {}
        part[item_id] = value

    def __delitem__(self, item_id: int) -> None:
        number = item_id >> PART_BITS
        part = self._parts[number]
        del part[item_id]
        if not part:
            del self._parts[number]

    def find(self, item_id: int) -> V | None:
        """Returns the value of an id; None without."""
        part = self._parts.get(item_id >> PART_BITS)
        return None if part is None else part.get(item_id)

    def every(self) -> Iterator[V]:
        """Iterates over all values, without a look-up for each as in `values()`."""
        return chain.from_iterable(part.values() for part in self._parts.values())

    def pop_neighbours(self, bits: int) -> list[tuple[int, V]]:
        """Removes any id and all that differ from it only in the last `bits` bits; returns them in
        order, with their values. Raises KeyError if the table is empty.
        """
        if not self._parts:
            raise KeyError("no id is left")
        number, part = next(reversed(self._parts.items()))
        # Not by a look at the last one: `popitem` alone steps only once over what was removed.
        found, value = part.popitem()
        part[found] = value
        first = found >> bits << bits
        pairs = [(one, part.pop(one)) for one in range(first, first + (1 << bits)) if one in part]
        if not part:
            del self._parts[number]
        return pairs

    def highest(self) -> int:
        """Returns the highest id; raises ValueError if the table is empty."""
        return max(self._parts[max(self._parts)])

    def part(self, item_id: int) -> dict[int, V]:
        """Returns the part that holds an id, for look-ups of its neighbours; do not change it."""
        return self._parts.get(item_id >> PART_BITS, {})

    def find_many(self, ids: Sequence[int]) -> tuple[list[V | None], int | None]:
        """Returns the values of ids, None for those without one; and the number of the part that
        holds all of them, None if any has no value or there are several parts.
        """
        if not self._parts or not ids:
            return [None] * len(ids), None
        number = ids[0] >> PART_BITS
        found: list[V | None] = list(map(self.part(ids[0]).get, ids))
        if all(found):
            return found, number
        if len(self._parts) > 1 or number not in self._parts:
            # In any order: two plain passes, as each look-up may wait for memory, and a processor
            # waits for several at once if little is done between them.
            of_number, none = self._parts.get, dict[int, V]()
            parts = [of_number(item_id >> PART_BITS, none) for item_id in ids]
            found = list(map(dict.get, parts, ids))
        return found, None

    def find_between(self, ids: Sequence[int]) -> list[V | None]:
        """Returns the values of ids that rise and are close together, None for those without."""
        number = part_of(ids, in_order=True)
        get = self.find if number is None else self.part(ids[0]).get
        return list(map(get, ids))

    def add_many(self, ids: Sequence[int], values: Sequence[V], part: int | None) -> None:
        """Sets values, all in `part` if it is given."""
        if part is None:
            for item_id, value in zip(ids, values, strict=True):
                self[item_id] = value
        else:
            self._parts.setdefault(part, {}).update(zip(ids, values, strict=True))

    def remove_many(self, ids: Sequence[int], part: int | None) -> None:
        """Deletes the values of ids, which must have one, all in `part` if it is given."""
        if part is None:
            for item_id in ids:
                del self[item_id]
            return
        values = self._parts[part]
        for item_id in ids:
            del values[item_id]
        if not values:
            del self._parts[part]


class IdSet(_Parts[set[int]], MutableSet[int]):
    """A set of ids."""

    __slots__ = ()

    def __contains__(self, item_id: object) -> bool:
        return isinstance(item_id, int) and item_id in self._parts.get(item_id >> PART_BITS, ())

    def add(self, item_id: int) -> None:
        """Adds an id."""
        self._parts.setdefault(item_id >> PART_BITS, set()).add(item_id)

    def discard(self, item_id: int) -> None:
        """Removes an id if present."""
        self.remove_many((item_id,), item_id >> PART_BITS)

    def pop(self) -> int:
        """Removes and returns any id; raises KeyError if the set is empty."""
        if not self._parts:
            raise KeyError("no id is left")
        number, part = next(reversed(self._parts.items()))
        item_id = part.pop()
        if not part:
            del self._parts[number]
        return item_id

    def pop_neighbours(self, bits: int) -> list[int]:
        """Removes any id and all that differ from it only in the last `bits` bits; returns them in
        order. Raises KeyError if the set is empty.
        """
        found = self.pop()
        part = self._parts.get(found >> PART_BITS, ())
        first = found >> bits << bits
        block = range(first, first + (1 << bits))
        ids = [item_id for item_id in block if item_id in part or item_id == found]
        self.remove_many(ids, found >> PART_BITS)
        return ids

    def add_many(self, ids: Sequence[int], part: int | None) -> None:
        """Adds ids, all in `part` if it is given."""
        if part is None:
            for item_id in ids:
                self.add(item_id)
        else:
            self._parts.setdefault(part, set()).update(ids)

    def remove_many(self, ids: Sequence[int], part: int | None) -> None:
        """Removes the ids that are present, all in `part` if it is given."""
        if part is None:
            for item_id in ids:
                self.discard(item_id)
            return
        known = self._parts.get(part)
        if known is not None:
            known.difference_update(ids)
            if not known:
                del self._parts[part]
