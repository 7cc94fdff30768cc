"""The lots of a shard by id."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from jobline_server.engine.lot import Lot


class LotIndex:
    """The lots of a shard by id: ids only grow, so a sorted list finds the lot of any of them, and
    who asks for one job often asks for its neighbour next."""

    __slots__ = ("_dead", "_ids", "_last", "lots")

    def __init__(self) -> None:
        self.lots: dict[int, Lot] = {}
        self._ids: list[int] = []
        self._dead = 0
        self._last: Lot | None = None

    def add(self, lot: Lot) -> None:
        """Adds a lot, whose ids are usually the highest so far."""
        if self._ids and lot.first_id < self._ids[-1]:
            self._ids.insert(bisect_right(self._ids, lot.first_id), lot.first_id)
        else:
            self._ids.append(lot.first_id)
        self.lots[lot.first_id] = lot

    def remove(self, lot: Lot) -> None:
        """Removes a lot; its place in the sorted list goes when half of the list is dead."""
        del self.lots[lot.first_id]
        self._last = None
        self._dead += 1
        if self._dead > 64 and self._dead * 2 > len(self._ids):
            self._ids = [first_id for first_id in self._ids if first_id in self.lots]
            self._dead = 0

    def find(self, job_id: int) -> Lot | None:
        """The lot whose ids cover this one, if it is still there."""
        lot = self._last
        if lot is None or not lot.first_id <= job_id < lot.first_id + len(lot.payloads):
            at = bisect_right(self._ids, job_id)
            lot = self._last = self.lots.get(self._ids[at - 1]) if at else None
        return lot if lot is not None and job_id < lot.end_id() else None

    def first_ids(self, start: int, most: int) -> list[int]:
        """First ids of lots from this id on, in order, at most so many; some lots may be gone."""
        at = bisect_left(self._ids, start)
        return self._ids[at : at + most]
