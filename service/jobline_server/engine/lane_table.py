"""The lanes of a queue by their keys.

Those of tenants, of whom there may be a million, are in parts: a full dictionary is copied as a
whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from jobline_server.engine.lane import Lane, LaneKey
from jobline_server.engine.name_table import part_of


class LaneTable:
    """Lanes by key."""

    __slots__ = ("_common", "_parts")

    def __init__(self) -> None:
        # Those that no tenant has, and those of tenants.
        self._common: dict[LaneKey, Lane] = {}
        self._parts: dict[int, dict[LaneKey, Lane]] = {}

    def __iter__(self) -> Iterator[Lane]:
        """Iterates over all lanes, unordered."""
        return chain(self._common.values(), *[part.values() for part in self._parts.values()])

    def find(self, key: LaneKey) -> Lane | None:
        """Returns the lane with this key; None without."""
        if not key[-1]:
            return self._common.get(key)
        part = self._parts.get(part_of(key[-1]))
        return None if part is None else part.get(key)

    def add(self, key: LaneKey) -> Lane:
        """Adds a lane with a key that has none, and returns it."""
        part = self._parts.setdefault(part_of(key[-1]), {}) if key[-1] else self._common
        lane = part[key] = Lane(*key)
        return lane

    def remove(self, lane: Lane) -> None:
        """Removes a lane."""
        if not lane.tenant:
            del self._common[lane.key]
            return
        number = part_of(lane.tenant)
        part = self._parts[number]
        del part[lane.key]
        if not part:
            del self._parts[number]
