"""Tables by id that grow without standing still.

A dict that is full moves all that it holds, a set too: at three million entries the loop stands
still for half a second. Ids of a shard are numbered in order and live about as long as their
neighbours, so a table here is one of parts: a dict, or a set, for each neighbourhood of
`1 << PART_BITS` ids, which takes a few milliseconds to grow, and goes when it is empty.

What comes in batches lies in one part, mostly. `part_of` names it, and a batch costs as much as it
would in a single dict; without it, each id is looked up by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, MutableMapping, MutableSet, Sequence
from itertools import chain
from typing import Generic, TypeVar

V = TypeVar("V")
P = TypeVar("P", bound=Collection[int])

PART_BITS = 17


def are_neighbours(ids: Sequence[int]) -> bool:
    """Whether different ids lie side by side, in order."""
    if len(ids) <= 1:
        return len(ids) == 1
    return ids[-1] - ids[0] == len(ids) - 1 and ids == sorted(ids)


def part_of(ids: Sequence[int], *, in_order: bool = False) -> int | None:
    """The part in which all of these lie, if it is one; `in_order` says that they rise."""
    if not ids:
        return None
    low, high = (ids[0], ids[-1]) if in_order else (min(ids), max(ids))
    number = low >> PART_BITS
    return number if high >> PART_BITS == number else None


class _Parts(Generic[P]):
    """What tables and sets in parts have alike: neighbourhoods by number, none of them empty."""

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
    """Values by id. No value is false."""

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
        """The value of an id, if it has one."""
        part = self._parts.get(item_id >> PART_BITS)
        return None if part is None else part.get(item_id)

    def every(self) -> Iterator[V]:
        """Yields all values, without looking each up as `values()` does."""
        return chain.from_iterable(part.values() for part in self._parts.values())

    def highest(self) -> int:
        """Returns the highest id. Raises ValueError if there is none."""
        return max(self._parts[max(self._parts)])

    def part(self, item_id: int) -> dict[int, V]:
        """The neighbourhood of an id, to look up those next to it; callers do not change it."""
        return self._parts.get(item_id >> PART_BITS, {})

    def find_many(self, ids: Sequence[int]) -> tuple[list[V | None], int | None]:
        """The values of ids, None where there is none; and the part in which all of them lie, if
        they have values and it is one.
        """
        if not self._parts or not ids:
            return [None] * len(ids), None
        number = ids[0] >> PART_BITS
        found: list[V | None] = list(map(self.part(ids[0]).get, ids))
        if all(found):
            return found, number
        if len(self._parts) > 1 or number not in self._parts:
            found = [
                self.find(one) if value is None else value
                for one, value in zip(ids, found, strict=True)
            ]
        return found, None

    def find_between(self, ids: Sequence[int]) -> list[V | None]:
        """The values of ids that rise and lie close together, None where there is none."""
        number = part_of(ids, in_order=True)
        get = self.find if number is None else self.part(ids[0]).get
        return list(map(get, ids))

    def add_many(self, ids: Sequence[int], values: Sequence[V], part: int | None) -> None:
        """Sets values, all in one part if it is given."""
        if part is None:
            for one, value in zip(ids, values, strict=True):
                self[one] = value
        else:
            self._parts.setdefault(part, {}).update(zip(ids, values, strict=True))

    def remove_many(self, ids: Sequence[int], part: int | None) -> None:
        """Deletes values that are there, all in one part if it is given."""
        if part is None:
            for one in ids:
                del self[one]
            return
        values = self._parts[part]
        for one in ids:
            del values[one]
        if not values:
            del self._parts[part]


class IdSet(_Parts[set[int]], MutableSet[int]):
    """Ids."""

    __slots__ = ()

    def __contains__(self, item_id: object) -> bool:
        return isinstance(item_id, int) and item_id in self._parts.get(item_id >> PART_BITS, ())

    def add(self, item_id: int) -> None:
        """Adds an id."""
        self._parts.setdefault(item_id >> PART_BITS, set()).add(item_id)

    def discard(self, item_id: int) -> None:
        """Removes an id, if it is there."""
        self.remove_many((item_id,), item_id >> PART_BITS)

    def pop(self) -> int:
        """Removes any id, and returns it. Raises KeyError if there is none."""
        if not self._parts:
            raise KeyError("no id is left")
        number, part = next(reversed(self._parts.items()))
        item_id = part.pop()
        if not part:
            del self._parts[number]
        return item_id

    def pop_neighbours(self, bits: int) -> list[int]:
        """Removes any id and all that differ from it in their last `bits` bits alone; returns them
        in order. Raises KeyError if there is none.
        """
        found = self.pop()
        part = self._parts.get(found >> PART_BITS, ())
        first = found >> bits << bits
        ids = [one for one in range(first, first + (1 << bits)) if one in part or one == found]
        self.remove_many(ids, found >> PART_BITS)
        return ids

    def add_many(self, ids: Sequence[int], part: int | None) -> None:
        """Adds ids, all in one part if it is given."""
        if part is None:
            for one in ids:
                self.add(one)
        else:
            self._parts.setdefault(part, set()).update(ids)

    def remove_many(self, ids: Sequence[int], part: int | None) -> None:
        """Removes those that are there, all in one part if it is given."""
        if part is None:
            for one in ids:
                self.discard(one)
            return
        known = self._parts.get(part)
        if known is not None:
            known.difference_update(ids)
            if not known:
                del self._parts[part]
