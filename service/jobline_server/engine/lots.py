"""The lots of a shard by id."""

from __future__ import annotations

from bisect import bisect_right, insort

from jobline_server.engine.lot import Lot
from jobline_server.engine.tables import IdTable

# First ids in one chunk, at most. Compacting a chunk takes 0.1 ms.
CHUNK_LOTS = 2_048


class _Chunk:
    """First ids in order; at least half of them are of existing lots."""

    __slots__ = ("alive", "ids")

    def __init__(self, ids: list[int], alive: int) -> None:
        self.ids = ids
        self.alive = alive


class LotIndex:
    """The lots of a shard by id. Ids only grow, so the first ids are sorted lists, kept short so
    that no step walks over all lots; the lot found last is tried first, as callers often look up
    neighbours.
    """

    __slots__ = ("_chunks", "_firsts", "_last", "lots")

    def __init__(self) -> None:
        self.lots: IdTable[Lot] = IdTable()
        self._chunks: list[_Chunk] = []
        self._firsts: list[int] = []
        self._last: Lot | None = None

    def add(self, lot: Lot) -> None:
        """Adds a lot, which usually has the highest ids so far."""
        first_id, chunks = lot.first_id, self._chunks
        self.lots[first_id] = lot
        at = len(chunks) - 1
        if at < 0 or (first_id > chunks[at].ids[-1] and len(chunks[at].ids) >= CHUNK_LOTS):
            chunks.append(_Chunk([first_id], 1))
            self._firsts.append(first_id)
            return
        if first_id > chunks[at].ids[-1]:
            chunks[at].ids.append(first_id)
        else:
            at = max(bisect_right(self._firsts, first_id) - 1, 0)
            insort(chunks[at].ids, first_id)
            self._firsts[at] = chunks[at].ids[0]
        chunks[at].alive += 1

    def remove(self, lot: Lot) -> None:
        """Removes a lot; its chunk is compacted when less than half of its lots exist."""
        del self.lots[lot.first_id]
        self._last = None
        at = bisect_right(self._firsts, lot.first_id) - 1
        chunk = self._chunks[at]
        chunk.alive -= 1
        if not chunk.alive:
            del self._chunks[at], self._firsts[at]
        elif chunk.alive * 2 < len(chunk.ids):
            chunk.ids = [first_id for first_id in chunk.ids if first_id in self.lots]
            self._firsts[at] = chunk.ids[0]

    def find(self, job_id: int) -> Lot | None:
        """Returns the existing lot whose range of ids includes this one; None without."""
        lot = self._last
        if lot is None or not lot.first_id <= job_id < lot.first_id + len(lot.payloads):
            at = bisect_right(self._firsts, job_id)
            if not at:
                return None
            ids = self._chunks[at - 1].ids
            lot = self._last = self.lots.find(ids[bisect_right(ids, job_id) - 1])
        return lot if lot is not None and job_id < lot.end_id() else None
