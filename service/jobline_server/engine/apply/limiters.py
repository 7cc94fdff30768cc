"""Applies the facts of limiters, and counts the active jobs that pass them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jobline_server.engine.apply.bookkeeping import count_active
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.apply.worker_time import settle_jobs, settle_run
from jobline_server.engine.job import Job
from jobline_server.engine.limiter_entries import LimiterChanged, LimiterDeleted
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.queue import Queue
from jobline_server.engine.state import ShardState


def apply_limiter_changed(shard: ShardState, fact: LimiterChanged, _offset: int) -> None:
    """Creates a limiter or changes its settings."""
    settings = fact.limiter
    if settings.name not in shard.own_limiters:
        shard.use_ids(settings.number, 1)
    shard.own_limiters[settings.name] = settings
    shard.limiters.put(settings, shard.clocks.mono_ms)
    shard.changes.limiters.to_write.add(settings.name)


def apply_limiter_deleted(shard: ShardState, fact: LimiterDeleted, _offset: int) -> None:
    """Deletes a limiter."""
    settings = shard.own_limiters.pop(fact.name)
    shard.limiters.drop(fact.name, shard.clocks.mono_ms)
    shard.changes.limiters.to_write.discard(fact.name)
    # It may not be in a checkpoint yet: removing nothing does no harm.
    shard.changes.limiters.to_delete.append(settings.number)


def take_permits(shard: ShardState, items: Iterable[Job | Lot], count: int = 1) -> None:
    """Has limiters count jobs that start: `count` of each item."""
    for item in items:
        if item.options.rules.limiters:
            shard.limiters.take(item.options.rules, count, shard.clocks.mono_ms)


def free_permits(shard: ShardState, jobs: Iterable[Job]) -> None:
    """Has limiters count jobs out that were active and are not any more."""
    if shard.limiters:
        for job in jobs:
            if job.options.rules.limiters:
                shard.limiters.free(job.options.rules, 1, shard.clocks.mono_ms)


def count_ended(shard: ShardState, queue: Queue, jobs: Sequence[Job]) -> None:
    """Counts single jobs of a queue out that were ACTIVE."""
    count_active(shard, queue, -len(jobs))
    free_permits(shard, jobs)
    if queue.fair is not None:
        settle_jobs(shard, queue, queue.fair, jobs)


def count_run_ended(shard: ShardState, lease: RunLease, count: int) -> None:
    """Counts members of a run out that were ACTIVE."""
    lot = lease.lot
    count_active(shard, lot.queue, -count)
    free_run(shard, lot, count)
    if lot.queue.fair is not None:
        settle_run(shard, lot.queue.fair, lease, count)


def free_run(shard: ShardState, lot: Lot, count: int) -> None:
    """Has limiters count members of a lot out that were active."""
    if shard.limiters and lot.options.rules.limiters:
        shard.limiters.free(lot.options.rules, count, shard.clocks.mono_ms)


APPLY: ApplyTable = {
    LimiterChanged: apply_limiter_changed,
    LimiterDeleted: apply_limiter_deleted,
}
