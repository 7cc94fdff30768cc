"""Blocks: in which neighbourhoods of ids a queue has live jobs.

Jobs come and go a million times a second, and hardly anybody asks for all of a queue in order of
id: a list, a call on many jobs, the deletion of the queue. So no list of ids is kept in order.
Instead each queue counts what it has in every block of `BLOCK_IDS` neighbouring ids, single jobs by
their id and lots by their first. A batch of neighbours costs a few additions, and who walks looks
up the ids of the blocks that are not empty, however many other queues the shard has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobline_server.engine.lane import Item
    from jobline_server.engine.queue import Queue
    from jobline_server.engine.shard import Shard

_BITS = 6
BLOCK_IDS = 1 << _BITS


class IdBlocks:
    """Numbers of items by block."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def __iter__(self) -> Iterator[int]:
        """The blocks that are not empty, in no order."""
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def counts(self) -> dict[int, int]:
        """How many items each block has."""
        return dict(self._counts)

    def add(self, ids: list[int], *, neighbours: bool) -> None:
        """Counts items in; `neighbours` by id mostly, as `are_neighbours` says."""
        self._count(ids, 1, neighbours=neighbours)

    def add_one(self, item_id: int) -> None:
        """Counts one item in."""
        self._change(item_id >> _BITS, 1)

    def remove(self, ids: list[int], *, neighbours: bool) -> None:
        """Counts items out."""
        self._count(ids, -1, neighbours=neighbours)

    def remove_one(self, item_id: int) -> None:
        """Counts one item out."""
        self._change(item_id >> _BITS, -1)

    def _count(self, ids: list[int], sign: int, *, neighbours: bool) -> None:
        if neighbours:
            self._count_run(ids[0], ids[-1], sign)
        else:
            for block, count in Counter([one >> _BITS for one in ids]).items():
                self._change(block, sign * count)

    def _count_run(self, first_id: int, last_id: int, sign: int) -> None:
        for block in range(first_id >> _BITS, (last_id >> _BITS) + 1):
            low, high = max(first_id, block << _BITS), min(last_id + 1, (block + 1) << _BITS)
            self._change(block, sign * (high - low))

    def _change(self, block: int, by: int) -> None:
        counts = self._counts
        left = counts.get(block, 0) + by
        if left:
            counts[block] = left
        else:
            del counts[block]


def items_from(
    shard: Shard, queue: Queue | None, first_id: int, look_ids: int
) -> Iterator[list[Item]]:
    """The single jobs and lots of a queue, or of all (None), by id, from the lot on that holds
    `first_id`, for callers that must not stand still: a list, perhaps an empty one, for every
    `look_ids` ids, or queues and blocks, that were looked at. What is pushed meanwhile is not among
    them.
    """
    holds_it = shard.lots.find(first_id)
    if holds_it is not None:
        first_id = holds_it.first_id
    low, end_id = first_id >> _BITS, shard.next_id()
    found_blocks: set[int] = set()
    looked = 0
    for one in list(shard.queues.values()) if queue is None else [queue]:
        found_blocks.update([block for block in one.blocks if block >= low])
        looked += 1 + len(one.blocks)
        if looked >= look_ids:
            looked = 0
            yield []
    # Numbers are let go as they are looked at: each was made among the jobs of its block, and the
    # last of them would have the memory of all jobs that end meanwhile go back in one step.
    blocks = sorted(found_blocks, reverse=True)
    found_blocks.clear()
    jobs, lots = shard.jobs, shard.lots.lots
    at_once = max(look_ids // BLOCK_IDS, 1)
    while blocks:
        ids = [
            job_id
            for block in reversed(blocks[-at_once:])
            for job_id in range(block << _BITS, (block + 1) << _BITS)
            if first_id <= job_id < end_id
        ]
        del blocks[-at_once:]
        # A lot whose first member left it has the id of a single job.
        found = zip(jobs.find_between(ids), lots.find_between(ids), strict=True)
        yield [
            item
            for both in found
            for item in both
            if item is not None and (queue is None or item.queue is queue)
        ]
