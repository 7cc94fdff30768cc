"""Applies the fact that changes a waiting job.

A READY job whose lane or time changes leaves a stand-in in its old lane, which is skipped there: a
lane is not searched for a job.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import lru_cache

from jobline_server.engine.apply.bookkeeping import mark_job, single
from jobline_server.engine.apply.group_changes import replace_ready
from jobline_server.engine.apply.groups import waits_in_line
from jobline_server.engine.apply.lanes import put_at_tail
from jobline_server.engine.apply.noted import note_jobs
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.job import Job
from jobline_server.engine.lane import lane_key
from jobline_server.engine.state import ShardState
from jobline_server.engine.states import Move, live
from jobline_server.engine.update_entries import JobUpdated, KeyForgotten
from jobline_server.engine.values import JobOptions, JobState

# Enum attribute access is slow before Python 3.12.
_SCHEDULED, _BLOCKED, _READY = JobState.SCHEDULED, JobState.BLOCKED, JobState.READY


def apply_job_updated(shard: ShardState, fact: JobUpdated, offset: int) -> None:
    """Changes a waiting job."""
    was_single = shard.jobs.find(fact.id) is not None
    job = single(shard, fact.id, may_be_ready=True)
    fact.before = job.state
    if job.state is _READY:
        job = _update_ready(shard, job, fact, offset, in_lane=was_single)
    else:
        _change(shard, job, fact)
        if job.state is _SCHEDULED:
            _reschedule(shard, job, fact, offset, has_entry=was_single)
        elif fact.run_at_ms is not None:
            job.run_at_ms = fact.run_at_ms
    fact.after = job.state
    note_jobs(shard, [job])
    mark_job(shard, job)


def _change(shard: ShardState, job: Job, fact: JobUpdated) -> None:
    if fact.priority is not None:
        job.options = _with_priority(job.options, fact.priority)
    if fact.payload is not None:
        more = len(fact.payload) - len(job.payload)
        job.payload = fact.payload
        job.queue.payload_bytes += more
        shard.load.payload_bytes += more


def _update_ready(
    shard: ShardState, job: Job, fact: JobUpdated, offset: int, *, in_lane: bool
) -> Job:
    """Changes a READY job, and returns it as it is now. With another priority, or if it was in a
    lot until now, it goes to the tail; with another payload alone it keeps its place.
    """
    queue, key = job.queue, lane_key(job)
    changed = copy(job)
    _change(shard, changed, fact)
    changed.offset = 0 if job.volatile else offset
    if fact.run_at_ms:
        changed.state = live(_READY, Move.POSTPONED, job.id)
    if in_lane:
        waits_in_group = waits_in_line(job)
        if changed.state is _READY and (lane_key(changed) == key or waits_in_group):
            job.payload, job.options, job.offset = changed.payload, changed.options, changed.offset
            shard.wake(queue)
            return job
        _take_out(shard, job, changed)
    shard.jobs[job.id] = changed
    if changed.state is _SCHEDULED:
        _schedule(shard, changed, fact.run_at_ms or 0)
        queue.counts[_SCHEDULED] += 1
    elif in_lane and fact.priority is None:
        queue.put_back([changed])
        shard.wake(queue)
    else:
        put_at_tail(shard, queue, [changed], changed.offset)
    return changed


def _take_out(shard: ShardState, job: Job, changed: Job) -> None:
    """Takes a READY job out of its lane, as a changed copy of it is put elsewhere."""
    if job.ties.group and job.queue.fair is None:
        replace_ready(shard, job, changed)
        return
    job.queue.leave(job, 1)
    job.become_stand_in()


def _reschedule(
    shard: ShardState, job: Job, fact: JobUpdated, offset: int, *, has_entry: bool
) -> None:
    """Gives a SCHEDULED job its new time; one without a timer of its own gets one."""
    if fact.run_at_ms is None:
        if not has_entry:
            _schedule(shard, job, job.run_at_ms)
        return
    move = Move.POSTPONED if fact.run_at_ms else Move.PROMOTED
    job.state = live(_SCHEDULED, move, job.id)
    if fact.run_at_ms:
        _schedule(shard, job, fact.run_at_ms)
    else:
        job.run_at_ms = 0
        job.note_ready(fact.at_ms)
        job.queue.counts[_SCHEDULED] -= 1
        put_at_tail(shard, job.queue, [job], 0 if job.volatile else offset)
    shard.unschedule(1)


def _schedule(shard: ShardState, job: Job, run_at_ms: int) -> None:
    job.run_at_ms = run_at_ms
    shard.schedule(run_at_ms, job.id)


@lru_cache(maxsize=1_024)
def _with_priority(options: JobOptions, priority: int) -> JobOptions:
    """Returns options with another priority, the same object for jobs that had the same."""
    return replace(options, priority=priority)


def apply_key_forgotten(shard: ShardState, fact: KeyForgotten, _offset: int) -> None:
    """Forgets a job key."""
    shard.keys.forget_one(fact.key_hash)


APPLY: ApplyTable = {
    JobUpdated: apply_job_updated,
    KeyForgotten: apply_key_forgotten,
}
