"""Applies the fact that the TTL of jobs has ended."""

from __future__ import annotations

from jobline_server.engine.apply.ends import end_jobs, end_members, singles_and_runs
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.entries import JobsExpired
from jobline_server.engine.state import ShardState
from jobline_server.engine.states import Move
from jobline_server.engine.values import EndReason


def apply_jobs_expired(shard: ShardState, fact: JobsExpired, _offset: int) -> None:
    """Ends waiting jobs as EXPIRED, or DEAD."""
    move = Move.EXPIRED_TO_DEAD if fact.to_dead else Move.EXPIRED
    jobs, runs = singles_and_runs(shard, fact.starts, fact.counts)
    if jobs:
        end_jobs(shard, jobs, move, fact.at_ms, reason=EndReason.EXPIRED)
    queues = {job.queue.name: job.queue for job in jobs}
    for first_id, count in runs:
        queue = end_members(shard, first_id, count, move, fact.at_ms)
        queues[queue.name] = queue
    # A consumer for which only these were chosen may be due others.
    for queue in queues.values():
        shard.wake(queue)
    shard.unschedule(len(fact.starts))


APPLY: ApplyTable = {
    JobsExpired: apply_jobs_expired,
}
