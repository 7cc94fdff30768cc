"""Timeouts: ends attempts that have taken too long, heartbeats or not. Each has failed, and its
worker is asked to stop.
"""

from __future__ import annotations

from jobline_server.engine import limits
from jobline_server.engine.commands import FailItem
from jobline_server.engine.decide.settle import fail_held
from jobline_server.engine.job import Job
from jobline_server.engine.lot import RunLease
from jobline_server.engine.timeouts import timed_at
from jobline_server.engine.values import JobError, Now
from jobline_server.engine.view import ShardView

TIMED_OUT = JobError(type="timeout", message="the attempt took longer than its timeout")


def time_out_due(shard: ShardView, now: Now) -> bool:
    """Ends a slice of the attempts that have timed out; returns whether more are due. If it raises,
    they are due again.
    """
    timeouts = shard.clocks.timeouts
    if not timeouts:
        return False
    taken: list[tuple[int, int]] = []
    limit = limits.TIMEOUT_SLICE_JOBS
    try:
        while limit > 0 and (due := timeouts.pop_due(now.mono_ms)) is not None:
            taken.append(due)
            job, run = timed_at(shard, *due)
            limit -= 1
            if job is not None:
                _fail(shard, now, job, job.id)
            if run is not None:
                limit -= _fail_run(shard, now, run, max(limit, 1))
    except BaseException:
        for due in taken:
            timeouts.add(*due)
        raise
    # Only the last run can have jobs left.
    if taken and timed_at(shard, *taken[-1])[1] is not None:
        timeouts.add(*taken[-1])
    first_ms = timeouts.first_ms()
    return first_ms is not None and first_ms <= now.mono_ms


def _fail_run(shard: ShardView, now: Now, run: RunLease, limit: int) -> int:
    """Fails up to `limit` jobs of a run; returns how many."""
    indexes = run.open_indexes()[:limit]
    for index in indexes:
        _fail(shard, now, run, run.lot.first_id + index)
    return len(indexes)


def _fail(shard: ShardView, now: Now, lease: Job | RunLease, job_id: int) -> None:
    item = FailItem(job_id, lease.delivery, TIMED_OUT)
    fail_held(shard, now, item, lease, timed_out=True)
