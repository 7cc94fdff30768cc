"""Puts READY jobs of fair queues into the lanes of their tenants."""

from __future__ import annotations

from collections.abc import Sequence

from jobline_server.engine.apply import groups
from jobline_server.engine.job import Job
from jobline_server.engine.lane import SMALL_BYTES, Lane
from jobline_server.engine.queue import Queue
from jobline_server.engine.state import ShardState


def put_fairly(shard: ShardState, queue: Queue, jobs: Sequence[Job], offset: int) -> None:
    """Appends jobs of one fair queue, which the caller has made READY, in this order; those that
    are `lifo`, and dead heads that were retried, go to the front.
    """
    to_front = [job for job in jobs if job.options.rules.lifo or job.id in queue.groups.dead_heads]
    if to_front:
        fronts = {job.id for job in to_front}
        jobs = [job for job in jobs if job.id not in fronts]
        _put_in_front(shard, queue, to_front, offset)
    order = shard.next_order
    has_large = max([len(job.payload) for job in jobs], default=0) > SMALL_BYTES
    # Many jobs share few options and tenants, in any order.
    lanes: dict[tuple[int, str], Lane] = {}
    before: dict[Lane, int] = {}
    for job in jobs:
        key = id(job.options), job.ties.group
        lane = lanes.get(key)
        if lane is None or has_large:
            lane = lanes[key] = queue.lane_of(job)
            before.setdefault(lane, lane.ready)
        order += 1
        job.order = order
        job.offset = offset
        (lane.unswept or lane.items).append(job)
        lane.ready += 1
    shard.next_order = order
    if before:
        queue.count_ready(before)
    shard.wake(queue)


def make_ready_fairly(shard: ShardState, queue: Queue, job: Job, offset: int) -> None:
    """Does the same for one job."""
    put_fairly(shard, queue, [job], 0 if job.volatile else offset)
    if not job.volatile:
        shard.changes.jobs.to_write.add(job.id)


def _put_in_front(shard: ShardState, queue: Queue, jobs: Sequence[Job], offset: int) -> None:
    for job, order in zip(jobs, shard.front_orders(len(jobs)), strict=True):
        job.order = order
        job.offset = offset
    queue.put_back(jobs)
    for job in jobs:
        if job.id in queue.groups.dead_heads:
            groups.forget_dead_head(shard, queue, job.id)
