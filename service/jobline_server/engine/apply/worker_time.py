"""Counts ACTIVE jobs of fair queues by tenant, when facts start and end leases. It is bookkeeping:
after a start all tenants are equal.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobline_server.engine.apply.bookkeeping import count_active
from jobline_server.engine.fair import FairShare
from jobline_server.engine.job import Job
from jobline_server.engine.lot import RunLease
from jobline_server.engine.queue import Queue
from jobline_server.engine.state import ShardState


def count_started(shard: ShardState, queue: Queue, jobs: Sequence[Job]) -> None:
    """Counts single jobs of a queue that are ACTIVE now, before they are counted out of lanes."""
    count_active(shard, queue, len(jobs))
    if queue.fair is not None:
        for name, of_tenant in _by_tenant(jobs).items():
            queue.fair.hand_out(name, of_tenant)


def settle_jobs(shard: ShardState, queue: Queue, fair: FairShare, jobs: Sequence[Job]) -> None:
    """Counts single jobs that are ACTIVE no more, and wakes their queue if others may start now."""
    for name, of_tenant in _by_tenant(jobs).items():
        took_ms = sum([max(shard.at_ms - job.leased_ms, 0) for job in of_tenant])
        if fair.settle(name, of_tenant, took_ms):
            shard.wake(queue)


def settle_run(shard: ShardState, fair: FairShare, lease: RunLease, count: int) -> None:
    """Counts members of a run that are ACTIVE no more."""
    took_ms = max(shard.at_ms - lease.leased_ms, 0)
    fair.settle("", (), count * took_ms, members=count)


def _by_tenant(jobs: Sequence[Job]) -> dict[str, list[Job]]:
    found: dict[str, list[Job]] = {}
    for job in jobs:
        found.setdefault(job.ties.group, []).append(job)
    return found
