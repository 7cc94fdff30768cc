"""Applies the facts of dependencies, and notes the ends of jobs that others wait for.

`note_ends` is called after every fact while anybody waits for anything: it sees which jobs a fact
ended by the effects of the fact, so that no fact is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from jobline_server.engine.apply.blocked import stop_waiting
from jobline_server.engine.apply.bookkeeping import mark_job
from jobline_server.engine.apply.ends import end_jobs
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.blocked_entries import (
    DependenciesFailed,
    DependentsTold,
    JobsAwaited,
    JobsNotAwaited,
    ParentsDropped,
    ParentsEnded,
    ParentsMet,
)
from jobline_server.engine.dependencies import END_OF_STATE, ParentEnd
from jobline_server.engine.endings import JobsEnded, QueueGone, RunsEnded
from jobline_server.engine.entries import Fact, JobsDeleted
from jobline_server.engine.job import Job
from jobline_server.engine.parents_left import without
from jobline_server.engine.state import ShardState
from jobline_server.engine.states import Move
from jobline_server.engine.values import EndReason, JobError


def note_ends(shard: ShardState, fact: Fact, *, volatile: bool) -> None:
    """Notes the ends of jobs that others wait for."""
    note = partial(_note, shard, volatile=volatile)
    for effect in shard.effects:
        if isinstance(effect, JobsEnded):
            note([job.id for job in effect.jobs], _end_of(effect))
        elif isinstance(effect, RunsEnded):
            note(effect.ids(), _end_of(effect))
        elif isinstance(effect, QueueGone):
            # Some may be volatile. After a restart all of them are looked up, and not found.
            _note(shard, _ids(effect.live), ParentEnd.DELETED, volatile=True)
            # Its ended jobs are gone, too, and nobody lists them.
            shard.dependencies.to_look_up |= shard.dependencies.ended
    if isinstance(fact, JobsDeleted):
        note(_ids(zip(fact.starts, fact.counts, strict=True)), ParentEnd.DELETED)


def _end_of(effect: JobsEnded | RunsEnded) -> ParentEnd:
    """Returns how jobs ended. Those that failed and are not kept count as deleted: nobody can retry
    them, so nobody may wait for it.
    """
    end = END_OF_STATE[effect.state]
    return end if effect.kept or end is ParentEnd.COMPLETED else ParentEnd.DELETED


def _ids(runs: Iterable[tuple[int, int]]) -> Iterable[int]:
    for first_id, count in runs:
        yield from range(first_id, first_id + count)


def _note(shard: ShardState, ids: Iterable[int], end: ParentEnd, *, volatile: bool) -> None:
    note_end = shard.dependencies.note_end
    for job_id in ids:
        note_end(job_id, end, volatile=volatile)


def apply_jobs_awaited(shard: ShardState, fact: JobsAwaited, _offset: int) -> None:
    """Notes which shard is to be told."""
    for job_id in fact.ids:
        shard.dependencies.add_shard(job_id, fact.by_shard)
        if shard.state_of(job_id) is None:
            shard.dependencies.ended[job_id] = None


def apply_jobs_not_awaited(shard: ShardState, fact: JobsNotAwaited, _offset: int) -> None:
    """Forgets which shard was to be told."""
    for job_id in fact.ids:
        shard.dependencies.remove_shard(job_id, fact.by_shard)


def apply_parents_ended(shard: ShardState, fact: ParentsEnded, _offset: int) -> None:
    """Notes the ends."""
    for job_id, end in zip(fact.ids, fact.ends, strict=True):
        shard.dependencies.note_end(job_id, end)


def apply_parents_met(shard: ShardState, fact: ParentsMet, _offset: int) -> None:
    """Shortens what BLOCKED jobs wait for."""
    dependencies = shard.dependencies
    free: list[Job] = []
    for job_id, parent in zip(fact.ids, fact.parents, strict=True):
        job = shard.jobs[job_id]
        details = job.writable_details()
        details.parents_left = without(details.parents_left, parent)
        dependencies.stop_waiting(job_id, (parent,))
        shard.load.dependencies -= 1
        mark_job(shard, job)
        if not details.parents_left:
            free.append(job)
    # One may still wait for its unique key.
    stop_waiting(shard, free)


def apply_parents_dropped(shard: ShardState, fact: ParentsDropped, _offset: int) -> None:
    """Forgets what BLOCKED jobs wait for; some may still wait for their unique keys."""
    jobs = [shard.jobs[job_id] for job_id in fact.ids]
    stop_waiting(shard, jobs)
    for job in jobs:
        mark_job(shard, job)


def apply_dependencies_failed(shard: ShardState, fact: DependenciesFailed, _offset: int) -> None:
    """Ends BLOCKED jobs."""
    jobs = [shard.jobs[job_id] for job_id in fact.ids]
    move = Move.CANCELLED if fact.cancelled else Move.DEPENDENCY_FAILED
    reason, error = EndReason.DEPENDENCY_FAILED, error_of(fact.parent, fact.end)
    end_jobs(shard, jobs, move, fact.at_ms, reason=reason, error=error)


def error_of(parent: int, end: ParentEnd) -> JobError:
    """Returns the error of a job that ended because of what became of its parent."""
    if end is ParentEnd.TIMED_OUT:
        why = "the jobs on which it depends did not complete within its block_timeout"
        return JobError("BlockTimeout", why)
    became = "was deleted" if end is ParentEnd.DELETED else f"is {end.name}"
    return JobError("DependencyFailed", f"job {parent}, on which it depends, {became}")


def apply_dependents_told(shard: ShardState, fact: DependentsTold, _offset: int) -> None:
    """Forgets the ends."""
    for job_id in fact.ids:
        shard.dependencies.forget_end(job_id)


APPLY: ApplyTable = {
    JobsAwaited: apply_jobs_awaited,
    JobsNotAwaited: apply_jobs_not_awaited,
    ParentsEnded: apply_parents_ended,
    ParentsMet: apply_parents_met,
    ParentsDropped: apply_parents_dropped,
    DependenciesFailed: apply_dependencies_failed,
    DependentsTold: apply_dependents_told,
}
