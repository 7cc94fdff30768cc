"""Puts jobs into their lanes, for the facts that make jobs READY."""

from __future__ import annotations

from jobline_server.engine.job import Job
from jobline_server.engine.lane import SMALL_BYTES, Lane
from jobline_server.engine.queue import Queue
from jobline_server.engine.state import ShardState


def put_at_tail(shard: ShardState, queue: Queue, jobs: list[Job], offset: int) -> None:
    """Appends jobs of one queue, which the caller has made READY, to their lanes in this order."""
    order = shard.next_order
    has_large = max([len(job.payload) for job in jobs], default=0) > SMALL_BYTES
    # Many jobs share few options, in any order.
    lanes: dict[int, Lane] = {}
    before: dict[Lane, int] = {}
    for job in jobs:
        lane = lanes.get(id(job.options))
        if lane is None or has_large:
            lane = lanes[id(job.options)] = queue.lane_of(job)
            before.setdefault(lane, lane.ready)
        order += 1
        job.order = order
        job.offset = offset
        (lane.unswept or lane.items).append(job)
        lane.ready += 1
    shard.next_order = order
    queue.count_ready(before)
    shard.wake(queue)
