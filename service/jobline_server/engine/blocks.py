"""Blocks: the blocks of ids in which a queue has live jobs.

Jobs come and go a million times a second, and few calls walk over a queue in order of id: lists,
calls on many jobs, the deletion of the queue. So no sorted list of ids is kept. Instead each queue
counts its items per block of `BLOCK_IDS` ids, single jobs by their id and lots by their first. A
batch of neighbours costs a few additions, and a walk looks up the ids of the blocks that are not
empty, however many other queues the shard has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

BLOCK_BITS = 6
BLOCK_IDS = 1 << BLOCK_BITS


class IdBlocks:
    """The number of items of each block that is not empty."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def __iter__(self) -> Iterator[int]:
        """Iterates over the blocks that are not empty, unordered."""
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def counts(self) -> dict[int, int]:
        """Returns a copy of the counts."""
        return dict(self._counts)

    def add(self, ids: list[int], *, neighbours: bool) -> None:
        """Counts items in; `neighbours` is the result of `are_neighbours` for their ids."""
        self._count(ids, 1, neighbours=neighbours)

    def add_one(self, item_id: int) -> None:
        """Counts one item in."""
        self._change(item_id >> BLOCK_BITS, 1)

    def remove(self, ids: list[int], *, neighbours: bool) -> None:
        """Counts items out."""
        self._count(ids, -1, neighbours=neighbours)

    def remove_one(self, item_id: int) -> None:
        """Counts one item out."""
        self._change(item_id >> BLOCK_BITS, -1)

    def _count(self, ids: list[int], sign: int, *, neighbours: bool) -> None:
        if neighbours:
            self._count_run(ids[0], ids[-1], sign)
        else:
            for block, count in Counter([item_id >> BLOCK_BITS for item_id in ids]).items():
                self._change(block, sign * count)

    def _count_run(self, first_id: int, last_id: int, sign: int) -> None:
        for block in range(first_id >> BLOCK_BITS, (last_id >> BLOCK_BITS) + 1):
            low, high = (
                max(first_id, block << BLOCK_BITS),
                min(last_id + 1, (block + 1) << BLOCK_BITS),
            )
            self._change(block, sign * (high - low))

    def _change(self, block: int, by: int) -> None:
        counts = self._counts
        count = counts.get(block, 0) + by
        if count:
            counts[block] = count
        else:
            del counts[block]
