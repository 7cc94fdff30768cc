"""Applies the facts that age out ended jobs and delete jobs: waiting, ended, and active ones of a
queue that is deleted.
"""

from __future__ import annotations

from jobline_server.engine.apply import batches, groups
from jobline_server.engine.apply.bookkeeping import (
    drop_jobs,
    drop_members,
    settle_members,
)
from jobline_server.engine.apply.ends import (
    alike,
    by_lease,
    leave_lot,
    leave_state,
    singles_and_runs,
)
from jobline_server.engine.apply.limiters import count_run_ended
from jobline_server.engine.apply.noted import note_jobs, note_runs
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.endings import EndedChange
from jobline_server.engine.entries import JobsAgedOut, JobsDeleted
from jobline_server.engine.job import Job
from jobline_server.engine.state import ShardState
from jobline_server.engine.states import IllegalMove, Move, after, live
from jobline_server.engine.values import WAITING_STATES, JobState, RevokeReason


def apply_jobs_aged_out(shard: ShardState, fact: JobsAgedOut, _offset: int) -> None:
    """Moves ended jobs to STALE; retention deletes them next."""
    state = live(fact.state, Move.AGED_OUT, fact.starts[0])
    counts, count = shard.queues[fact.queue].counts, sum(fact.counts)
    counts[fact.state] -= count
    counts[state] += count
    delete_ms = fact.at_ms + fact.delete_after_ms
    shard.effects.append(EndedChange(state, fact.starts, fact.counts, fact.at_ms, delete_ms))


def apply_jobs_deleted(shard: ShardState, fact: JobsDeleted, _offset: int) -> None:
    """Deletes jobs of one state."""
    after(fact.state, Move.DELETED, fact.starts[0])
    if fact.state is JobState.ACTIVE:
        _delete_active(shard, fact)
        return
    if fact.state not in WAITING_STATES:
        shard.queues[fact.queue].counts[fact.state] -= sum(fact.counts)
        shard.effects.append(EndedChange(None, fact.starts, fact.counts, fact.at_ms))
        groups.forget_dead_heads(shard, shard.queues[fact.queue], fact.starts, fact.counts)
        return
    jobs, runs = singles_and_runs(shard, fact.starts, fact.counts)
    _drop_singles(shard, jobs)
    for first_id, count in runs:
        lot = leave_lot(shard, first_id, count, Move.DELETED)
        note_runs(shard, lot, [(first_id, count)])
        batches.note_deleted(shard, lot.options.rules.batch_id, count)
        drop_members(shard, lot, count, lot.payloads.bytes_of(first_id - lot.first_id, count))
    shard.unschedule(len(fact.starts))


def _delete_active(shard: ShardState, fact: JobsDeleted) -> None:
    """Deletes active jobs and revokes their leases."""
    jobs, runs = singles_and_runs(shard, fact.starts, fact.counts)
    for job in jobs:
        if job.holder is None:
            raise IllegalMove(f"job {job.id} is not leased")
        shard.revoke(job, job.id, RevokeReason.QUEUE_DELETED)
    _drop_singles(shard, jobs)
    for lease, starts, counts in by_lease(shard, runs):
        total, payload_bytes = settle_members(lease, starts, counts)
        note_runs(shard, lease.lot, zip(starts, counts, strict=True), lease)
        count_run_ended(shard, lease, total)
        batches.note_deleted(shard, lease.lot.options.rules.batch_id, total)
        drop_members(shard, lease.lot, total, payload_bytes)
        for first_id, count in zip(starts, counts, strict=True):
            for job_id in range(first_id, first_id + count):
                shard.revoke(lease, job_id, RevokeReason.QUEUE_DELETED)


def _drop_singles(shard: ShardState, jobs: list[Job]) -> None:
    if shard.batches.live:
        batches.note_jobs_deleted(shard, jobs)
    note_jobs(shard, jobs)
    for group in alike(jobs) if jobs else ():
        after(group[0].state, Move.DELETED, group[0].id)
        leave_state(shard, group[0].queue, group)
        for job in group:
            # A deleted job has no state; its lane skips entries in any state but READY.
            job.state = JobState.STALE
        drop_jobs(shard, group[0].queue, group)


APPLY: ApplyTable = {
    JobsAgedOut: apply_jobs_aged_out,
    JobsDeleted: apply_jobs_deleted,
}
