"""Items: the lots and single jobs of a shard, and walks over them in order of id."""

from __future__ import annotations

from collections.abc import Iterator

from jobline_server.engine.blocks import BLOCK_BITS, BLOCK_IDS
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.queue import Queue
from jobline_server.engine.state import ShardState

Item = Lot | Job


def items_from(
    shard: ShardState, queue: Queue | None, first_id: int, step_ids: int
) -> Iterator[list[Item]]:
    """Yields the single jobs and lots of a queue (None: all queues) in order of id, from the lot
    that holds `first_id` on. Each list, which may be empty, is a step over about `step_ids` ids, or
    queues and blocks, so that the caller can pause. Jobs pushed meanwhile are left out.
    """
    first_lot = shard.lots.find(first_id)
    if first_lot is not None:
        first_id = first_lot.first_id
    low, end_id = first_id >> BLOCK_BITS, shard.next_id()
    found_blocks: set[int] = set()
    examined = 0
    for of_queue in list(shard.queues.values()) if queue is None else [queue]:
        found_blocks.update([block for block in of_queue.blocks if block >= low])
        examined += 1 + len(of_queue.blocks)
        if examined >= step_ids:
            examined = 0
            yield []
    # Each number is dropped once visited: it was allocated among the jobs of its block, so keeping
    # them all would return the memory of the jobs that end meanwhile in a single step.
    blocks = sorted(found_blocks, reverse=True)
    found_blocks.clear()
    jobs, lots = shard.jobs, shard.lots.lots
    at_once = max(step_ids // BLOCK_IDS, 1)
    while blocks:
        ids = [
            job_id
            for block in reversed(blocks[-at_once:])
            for job_id in range(block << BLOCK_BITS, (block + 1) << BLOCK_BITS)
            if first_id <= job_id < end_id
        ]
        del blocks[-at_once:]
        # A lot whose first member was split off has the id of a single job.
        found = zip(jobs.find_between(ids), lots.find_between(ids), strict=True)
        yield [
            item
            for job_and_lot in found
            for item in job_and_lot
            if item is not None and (queue is None or item.queue is queue)
        ]
