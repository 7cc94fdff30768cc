"""Puts jobs into their lanes, for the facts that make jobs READY."""

from __future__ import annotations

from collections.abc import Sequence

from jobline_server.engine.apply import groups
from jobline_server.engine.apply.fair_lanes import put_fairly
from jobline_server.engine.job import Job
from jobline_server.engine.lane import SMALL_BYTES, Lane
from jobline_server.engine.lot import Lot
from jobline_server.engine.queue import Queue
from jobline_server.engine.state import ShardState


def put_at_tail(shard: ShardState, queue: Queue, jobs: list[Job], offset: int) -> None:
    """Appends jobs of one queue, which the caller has made READY, to their lanes in this order;
    `lifo` jobs go to the front, those of groups to their lanes only when it is their turn, or to
    those of their tenant.
    """
    if queue.fair is not None:
        put_fairly(shard, queue, jobs, offset)
        return
    if queue.groups and any(job.ties.group for job in jobs):
        in_front: list[Job] = []
        rest: list[Job] = []
        for job in jobs:
            goes_in_front = job.options.rules.lifo and not job.ties.group
            (in_front if goes_in_front else rest).append(job)
        groups.put_each(shard, queue, rest, offset)
        if in_front:
            put_in_front(shard, in_front, offset)
        return
    order = shard.next_order
    has_large = max([len(job.payload) for job in jobs], default=0) > SMALL_BYTES
    # Many jobs share few options, in any order.
    lanes: dict[int, Lane] = {}
    before: dict[Lane, int] = {}
    for job in jobs:
        lane = lanes.get(id(job.options))
        if lane is None or has_large:
            if job.options.rules.lifo:
                break
            lane = lanes[id(job.options)] = queue.lane_of(job)
            before.setdefault(lane, lane.ready)
        order += 1
        job.order = order
        job.offset = offset
        (lane.unswept or lane.items).append(job)
        lane.ready += 1
    placed, shard.next_order = order - shard.next_order, order
    queue.count_ready(before)
    if placed < len(jobs):
        rest = jobs[placed:]
        put_in_front(shard, [job for job in rest if job.options.rules.lifo], offset)
        put_at_tail(shard, queue, [job for job in rest if not job.options.rules.lifo], offset)
    shard.wake(queue)


def put_in_lane(shard: ShardState, item: Job | Lot, jobs: int) -> None:
    """Puts an item with this number of READY jobs into its lane."""
    if item.options.rules.lifo:
        [item.order] = shard.front_orders(1)
        item.queue.put_back([item], ready=jobs)
    else:
        item.order = shard.tail_order()
        item.queue.put(item, jobs)


def put_in_front(shard: ShardState, jobs: Sequence[Job], offset: int) -> None:
    """Puts jobs of one queue, which the caller has made READY, to the front of their lanes; they
    keep their order.
    """
    for job, order in zip(jobs, shard.front_orders(len(jobs)), strict=True):
        job.order = order
        job.offset = offset
    jobs[0].queue.put_back(jobs)
