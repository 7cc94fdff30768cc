"""Ended jobs age, and jobs are deleted, ended ones and waiting ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobline_server.engine.apply.ends import alike, leave_lot, leave_state, singles_and_runs
from jobline_server.engine.apply.touch import drop_jobs, drop_members
from jobline_server.engine.endings import EndedChange
from jobline_server.engine.entries import JobsDeleted, JobsStaled
from jobline_server.engine.states import Move, after, live
from jobline_server.engine.values import WAITING_STATES, JobState

if TYPE_CHECKING:
    from jobline_server.engine.shard import Shard


def apply_jobs_staled(shard: Shard, fact: JobsStaled, _offset: int) -> None:
    """Ended jobs are deleted next."""
    live(fact.state, Move.STALED, fact.starts[0])
    ended, count = shard.queues[fact.queue].ended, sum(fact.counts)
    ended[fact.state] = ended.get(fact.state, 0) - count
    ended[JobState.STALE] = ended.get(JobState.STALE, 0) + count
    shard.ended.append(EndedChange(JobState.STALE, fact.starts, fact.counts, fact.at_ms))


def apply_jobs_deleted(shard: Shard, fact: JobsDeleted, _offset: int) -> None:
    """Jobs are gone, waiting or ended ones."""
    after(fact.state, Move.DELETED, fact.starts[0])
    if fact.state not in WAITING_STATES:
        ended = shard.queues[fact.queue].ended
        ended[fact.state] = ended.get(fact.state, 0) - sum(fact.counts)
        shard.ended.append(EndedChange(None, fact.starts, fact.counts, fact.at_ms))
        return
    jobs, runs = singles_and_runs(shard, fact.starts, fact.counts)
    for group in alike(jobs) if jobs else ():
        leave_state(group[0].queue, group)
        for job in group:
            job.state = JobState.STALE
        drop_jobs(shard, group[0].queue, group)
    for first_id, count in runs:
        lot = leave_lot(shard, first_id, count, Move.DELETED)
        drop_members(shard, lot, count, lot.payloads.bytes_of(first_id - lot.first_id, count))
    shard.unschedule(len(fact.starts))
