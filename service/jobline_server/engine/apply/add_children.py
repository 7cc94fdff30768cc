"""Applies the facts by which an ACTIVE job waits for children that it adds."""

from __future__ import annotations

from jobline_server.engine.apply import groups
from jobline_server.engine.apply.attempts import note_attempt
from jobline_server.engine.apply.blocked import begin_to_wait
from jobline_server.engine.apply.bookkeeping import mark_job, single, unlease
from jobline_server.engine.apply.limiters import count_ended
from jobline_server.engine.apply.noted import note_jobs
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.blocked_entries import ChildrenAdded, JobSetAside
from jobline_server.engine.expiring import expect_expiry
from jobline_server.engine.parents_left import left_of
from jobline_server.engine.state import ShardState
from jobline_server.engine.states import Move, live
from jobline_server.engine.values import AttemptOutcome, JobState, LeaseReason


def apply_job_set_aside(shard: ShardState, fact: JobSetAside, _offset: int) -> None:
    """Ends the lease of a job, which is BLOCKED then. It uses up neither an attempt nor a stall nor
    a release, and holds no place of its group, limiters or queue.
    """
    job = single(shard, fact.id)
    state = live(job.state, Move.SET_ASIDE, job.id)
    note_jobs(shard, [job])
    note_attempt(shard, job, fact.at_ms, AttemptOutcome.RELEASED, None)
    unlease(job)
    expect_expiry(shard, job)
    job.state = state
    job.run_at_ms = 0
    # It waits in no lane, and from the moment when it is unblocked as if it had never waited.
    job.note_ready(0)
    job.lease_reason = LeaseReason.CHILDREN_ENDED
    job.queue.counts[JobState.BLOCKED] += 1
    count_ended(shard, job.queue, [job])
    groups.step_aside(shard, job)
    mark_job(shard, job)
    shard.wake(job.queue)


def apply_children_added(shard: ShardState, fact: ChildrenAdded, _offset: int) -> None:
    """Has a BLOCKED job wait for more jobs. Those that it had waited for are children as well."""
    job = shard.jobs[fact.id]
    job.ties = job.ties.with_parents(fact.children, fact.on_failure)
    shard.load.wanted.add(fact.children)
    details = job.writable_details()
    details.parents_left = left_of(fact.parents_left, job.ties)
    details.blocked_until_ms = fact.blocked_until_ms
    begin_to_wait(shard, [job])
    mark_job(shard, job)


APPLY: ApplyTable = {
    JobSetAside: apply_job_set_aside,
    ChildrenAdded: apply_children_added,
}
