"""Applies the facts of BLOCKED jobs, which wait for other jobs. All of them are single jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby

from jobline_server.engine.apply.bookkeeping import mark_job
from jobline_server.engine.apply.lanes import put_at_tail
from jobline_server.engine.apply.noted import note_jobs
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.blocked_entries import JobsUnblocked
from jobline_server.engine.entries import JobsPushed
from jobline_server.engine.job import Job
from jobline_server.engine.liveness import not_live
from jobline_server.engine.parents_left import left_of
from jobline_server.engine.state import ShardState
from jobline_server.engine.states import Move, live
from jobline_server.engine.values import JobState

# Enum attribute access is slow before Python 3.12.
_BLOCKED, _SCHEDULED = JobState.BLOCKED, JobState.SCHEDULED


def block_new(shard: ShardState, jobs: list[Job], fact: JobsPushed) -> tuple[list[Job], list[int]]:
    """Makes those of the new jobs BLOCKED that the fact names; returns the others, and their times
    as in the fact.
    """
    state = live(None, Move.PUSHED_BLOCKED, jobs[0].id)
    run_at_ms = fact.run_at_ms
    for index in fact.blocked:
        job = jobs[index]
        job.state = state
        job.run_at_ms = run_at_ms[index] if run_at_ms else 0
    jobs[0].queue.counts[_BLOCKED] += len(fact.blocked)
    columns = (fact.blocked, fact.parents_left, fact.blocked_until_ms)
    waiting: list[Job] = []
    for index, parents, until_ms in zip(*columns, strict=False):
        job = jobs[index]
        details = job.writable_details()
        details.parents_left, details.blocked_until_ms = left_of(parents, job.ties), until_ms
        waiting.append(job)
    begin_to_wait(shard, waiting)
    free = [index for index, job in enumerate(jobs) if job.state is not _BLOCKED]
    times = [run_at_ms[index] for index in free] if run_at_ms else []
    return [jobs[index] for index in free], times


def begin_to_wait(shard: ShardState, jobs: Sequence[Job]) -> None:
    """Has jobs wait for their parents, some of which may be over."""
    wait_for_parents(shard, jobs)
    parents = {parent for job in jobs for parent in job.details.parents_left}
    shard.dependencies.ended.update(dict.fromkeys(not_live(shard, parents)))


def wait_for_parents(shard: ShardState, jobs: Iterable[Job]) -> None:
    """Notes which jobs BLOCKED ones wait for, and until when; also for ones that are loaded."""
    for parents, alike in groupby(jobs, lambda job: job.details.parents_left):
        children = [*alike]
        shard.dependencies.wait([job.id for job in children], parents)
        shard.load.dependencies += len(parents) * len(children)
        for job in children:
            if job.details.blocked_until_ms:
                shard.dependencies.timeouts.add(job.details.blocked_until_ms, job.id)


def stop_waiting(shard: ShardState, jobs: Iterable[Job]) -> None:
    """Forgets which jobs BLOCKED ones wait for, and until when."""
    timeouts = 0
    for job in jobs:
        details = job.details
        if details.parents_left:
            shard.dependencies.stop_waiting(job.id, details.parents_left)
            shard.load.dependencies -= len(details.parents_left)
            details.parents_left = ()
        if details.blocked_until_ms:
            details.blocked_until_ms = 0
            timeouts += 1
    if timeouts:
        shard.dependencies.timeouts.sweep(timeouts, partial(_is_blocked_until, shard))


def _is_blocked_until(shard: ShardState, until_ms: int, job_id: int) -> bool:
    job = shard.jobs.find(job_id)
    return job is not None and job.details.blocked_until_ms == until_ms


def apply_jobs_unblocked(shard: ShardState, fact: JobsUnblocked, offset: int) -> None:
    """Makes BLOCKED jobs READY, or SCHEDULED until their time."""
    fact.run_at_ms = unblock(shard, [shard.jobs[job_id] for job_id in fact.ids], fact.at_ms, offset)


def unblock(shard: ShardState, jobs: Sequence[Job], at_ms: int, offset: int) -> list[int]:
    """Makes BLOCKED jobs of one queue READY, or SCHEDULED until their time. Returns these times, 0
    for READY ones.
    """
    queue = jobs[0].queue
    ready: list[Job] = []
    times: list[int] = []
    for job in jobs:
        waits = job.run_at_ms > at_ms
        move = Move.UNBLOCKED_FOR_LATER if waits else Move.UNBLOCKED
        job.state = live(job.state, move, job.id)
        if waits:
            queue.counts[_SCHEDULED] += 1
            shard.schedule(job.run_at_ms, job.id)
        else:
            job.run_at_ms = 0
            job.note_ready(at_ms)
            ready.append(job)
        times.append(job.run_at_ms)
        mark_job(shard, job)
    note_jobs(shard, jobs)
    queue.counts[_BLOCKED] -= len(jobs)
    if ready:
        put_at_tail(shard, queue, ready, offset)
    return times


APPLY: ApplyTable = {
    JobsUnblocked: apply_jobs_unblocked,
}
