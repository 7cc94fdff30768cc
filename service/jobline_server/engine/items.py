"""Items: what stands for jobs in a shard, a lot or a single job, and walks over them by id."""

from __future__ import annotations

from collections.abc import Iterator

from jobline_server.engine.blocks import BLOCK_BITS, BLOCK_IDS
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.queue import Queue
from jobline_server.engine.state import ShardState

Item = Lot | Job


def items_from(
    shard: ShardState, queue: Queue | None, first_id: int, look_ids: int
) -> Iterator[list[Item]]:
    """The single jobs and lots of a queue, or of all (None), by id, from the lot on that holds
    `first_id`, for callers that must not stand still: a list, perhaps an empty one, for every
    `look_ids` ids, or queues and blocks, that were looked at. What is pushed meanwhile is not among
    them.
    """
    holds_it = shard.lots.find(first_id)
    if holds_it is not None:
        first_id = holds_it.first_id
    low, end_id = first_id >> BLOCK_BITS, shard.next_id()
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
            for job_id in range(block << BLOCK_BITS, (block + 1) << BLOCK_BITS)
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
