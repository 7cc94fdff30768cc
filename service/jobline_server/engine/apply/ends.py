"""Applies the facts that end jobs."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from jobline_server.engine.apply import groups
from jobline_server.engine.apply.attempts import note_attempt
from jobline_server.engine.apply.blocked import stop_waiting
from jobline_server.engine.apply.bookkeeping import (
    drop_jobs,
    drop_members,
    member_of,
    settle_members,
    single,
    unlease_all,
)
from jobline_server.engine.apply.keeping import awaited_of, is_kept, keeping_of
from jobline_server.engine.apply.limiters import count_ended, count_run_ended
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.endings import JobsEnded, RunsEnded
from jobline_server.engine.entries import JobDied, JobsCancelled, JobsCompleted
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.queue import Queue
from jobline_server.engine.state import ShardState
from jobline_server.engine.states import IllegalMove, Move, after, live
from jobline_server.engine.values import (
    AttemptOutcome,
    EndReason,
    JobError,
    JobState,
    RevokeReason,
)
from jobline_server.engine.wanted import runs_without

LOST_LEASE = (EndReason.STALLED, EndReason.WORKER_LOST, EndReason.INTERRUPTED)
NO_RESULTS: Mapping[int, bytes] = MappingProxyType({})


def apply_jobs_completed(shard: ShardState, fact: JobsCompleted, _offset: int) -> None:
    """Ends active jobs as COMPLETED."""
    results = dict(zip(fact.result_ids, fact.results, strict=True))
    jobs, runs = singles_and_runs(shard, fact.starts, fact.counts)
    if jobs:
        end_jobs(shard, jobs, Move.COMPLETED, fact.at_ms, results=results)
    for lease, starts, counts in by_lease(shard, runs):
        _complete_members(shard, lease, starts, counts, fact.at_ms, results)


def singles_and_runs(
    shard: ShardState, starts: list[int], counts: list[int]
) -> tuple[list[Job], list[tuple[int, int]]]:
    """Returns the single jobs, and the runs that are in lots."""
    found, _ = shard.jobs.find_many(starts)
    jobs = [job for job in found if job is not None]
    if len(jobs) == len(starts):
        return jobs, []
    runs = zip(starts, counts, found, strict=True)
    return jobs, [(start, count) for start, count, job in runs if job is None]


def by_lease(
    shard: ShardState, runs: list[tuple[int, int]]
) -> Iterator[tuple[RunLease, list[int], list[int]]]:
    """Yields runs grouped by lease: neighbours on the list that are on one lease. Each lease is
    looked up only after the group before it was handled, which may have changed it.
    """
    lease: RunLease | None = None
    starts: list[int] = []
    counts: list[int] = []
    low = high = 0
    for first_id, count in runs:
        if not low <= first_id < high:
            if lease is not None:
                yield lease, starts, counts
            lease = _lease_of(shard, first_id)
            low = lease.lot.first_id + lease.start
            high = low + lease.count
            starts, counts = [], []
        if first_id + count > high:
            raise IllegalMove(f"jobs from {first_id} on are not leased together")
        starts.append(first_id)
        counts.append(count)
    if lease is not None:
        yield lease, starts, counts


def _lease_of(shard: ShardState, job_id: int) -> RunLease:
    lot = shard.lots.find(job_id)
    lease = lot.lease_at(job_id - lot.first_id) if lot else None
    if lease is None:
        raise IllegalMove(f"job {job_id} is not leased")
    return lease


def _complete_members(
    shard: ShardState,
    lease: RunLease,
    starts: list[int],
    counts: list[int],
    at_ms: int,
    results: Mapping[int, bytes],
) -> None:
    """Completes members of one run. Those with a result end as single jobs."""
    lot = lease.lot
    queue, state = lot.queue, live(JobState.ACTIVE, Move.COMPLETED, starts[0])
    total, payload_bytes = settle_members(lease, starts, counts)
    kept = is_kept(queue, lot, state)
    awaited = [] if kept else awaited_of(shard, lot, starts, counts, state)
    if awaited:
        jobs = [member_of(lease, job_id, state) for job_id in awaited]
        shard.effects.append(JobsEnded(state, jobs, at_ms, True, results, for_readers=True))
        _count_ended(queue, state, len(jobs), kept=True)
        starts, counts = runs_without(starts, counts, awaited)
    if results:
        jobs = [member_of(lease, first_id, state) for first_id in starts if first_id in results]
        if jobs:
            shard.effects.append(JobsEnded(state, jobs, at_ms, kept, results))
            runs = zip(starts, counts, strict=True)
            rest = [run for run in runs if run[0] not in results]
            starts, counts = [start for start, _ in rest], [count for _, count in rest]
    if starts:
        delivery, worker = lease.delivery, lease.holder.worker
        ids = array("q", starts)
        ended = RunsEnded(lot, state, ids, counts, at_ms, delivery, worker, kept)
        ended.leased_ms, ended.version = lease.leased_ms, lease.holder.version
        shard.effects.append(ended)
    count_run_ended(shard, lease, total)
    queue.completed_total += total
    _count_ended(queue, state, total, kept=kept)
    drop_members(shard, lot, total, payload_bytes)


def _count_ended(queue: Queue, state: JobState, count: int, *, kept: bool) -> None:
    if kept:
        queue.counts[state] += count


def end_jobs(
    shard: ShardState,
    jobs: list[Job],
    move: Move,
    at_ms: int,
    *,
    results: Mapping[int, bytes] = NO_RESULTS,
    reason: EndReason = EndReason.NONE,
    error: JobError | None = None,
) -> None:
    """Ends single jobs by one move."""
    sorts = alike(jobs)
    states = [live(group[0].state, move, group[0].id) for group in sorts]
    for group, state in zip(sorts, states, strict=True):
        queue, before = group[0].queue, group[0].state
        leave_state(shard, queue, group)
        keeping = keeping_of(shard, queue, group, state)
        is_retried = state is JobState.DEAD and queue.settings.dead_letters.auto_retry is not None
        for job in group:
            job.state = state
        for ended in keeping:
            if ended:
                kept = ended is not keeping.forgotten
                _count_ended(queue, state, len(ended), kept=kept)
                ending = JobsEnded(state, ended, at_ms, kept, results, reason, error, before)
                ending.settings = queue.settings if is_retried else None
                ending.for_readers = ended is keeping.for_readers
                shard.effects.append(ending)
        if move is Move.COMPLETED:
            queue.completed_total += len(group)
        drop_jobs(shard, queue, group)


def alike(jobs: list[Job]) -> list[list[Job]]:
    """Returns jobs in groups of one queue and state; nearly always one group."""
    queue, state = jobs[0].queue, jobs[0].state
    for job in jobs:
        if job.queue is not queue or job.state is not state:
            break
    else:
        return [jobs]
    found: dict[tuple[int, JobState], list[Job]] = {}
    for job in jobs:
        found.setdefault((job.queue.number, job.state), []).append(job)
    return list(found.values())


def leave_state(shard: ShardState, queue: Queue, jobs: list[Job]) -> None:
    """Takes jobs of one queue and state out of the count of that state, and ends their leases."""
    state = jobs[0].state
    if state is JobState.ACTIVE:
        unlease_all(jobs)
        count_ended(shard, queue, jobs)
    elif state is JobState.READY:
        for job in groups.leave_waiting(queue, jobs) if queue.groups else jobs:
            queue.leave(job, 1)
    else:
        queue.counts[state] -= len(jobs)
        if state is JobState.BLOCKED:
            stop_waiting(shard, jobs)


def apply_job_died(shard: ShardState, fact: JobDied, _offset: int) -> None:
    """Ends an active job as DEAD: after an error, which uses up an attempt, or a lost lease."""
    job = single(shard, fact.id)
    live(job.state, Move.DIED, job.id)
    # A job without an error whose retries are over lost its lease.
    stalled = not fact.timed_out and (
        fact.reason in LOST_LEASE
        or (fact.reason is EndReason.RETRY_UNTIL_PASSED and fact.error is None)
    )
    outcome = AttemptOutcome.STALLED if stalled else AttemptOutcome.FAILED
    note_attempt(shard, job, fact.at_ms, outcome, fact.error)
    if stalled:
        shard.revoke(job, job.id, RevokeReason.LEASE_LOST)
        job.stalls += 1
    else:
        if fact.timed_out:
            shard.revoke(job, job.id, RevokeReason.TIMEOUT)
        job.attempts += 1
        job.queue.failed_total += 1
    if job.ties.group:
        groups.hold_by_dead_head(shard, job)
    end_jobs(shard, [job], Move.DIED, fact.at_ms, reason=fact.reason, error=fact.error)


def apply_jobs_cancelled(shard: ShardState, fact: JobsCancelled, _offset: int) -> None:
    """Ends jobs as CANCELLED: waiting ones, or active ones that their worker has settled."""
    results = dict(zip(fact.result_ids, fact.results, strict=True))
    jobs, runs = singles_and_runs(shard, fact.starts, fact.counts)
    # A member that is leased was failed with `then: CANCEL`: it ends as a single job.
    leased = {first_id: None for first_id, _ in runs if shard.find_lease(first_id)[0] is not None}
    jobs += [single(shard, first_id) for first_id in leased]
    if fact.error is not None:
        failed = single(shard, fact.starts[0])
        note_attempt(shard, failed, fact.at_ms, AttemptOutcome.CANCELLED, fact.error)
    if jobs:
        end_jobs(
            shard,
            jobs,
            Move.CANCELLED,
            fact.at_ms,
            results=results,
            reason=EndReason.CANCELLED,
            error=fact.error,
        )
    for first_id, count in runs:
        if first_id not in leased:
            end_members(shard, first_id, count, Move.CANCELLED, fact.at_ms)
    shard.unschedule(len(fact.starts))


def end_members(shard: ShardState, first_id: int, count: int, move: Move, at_ms: int) -> Queue:
    """Ends waiting members of a lot by one move; returns their queue."""
    lot = leave_lot(shard, first_id, count, move)
    before = lot.state
    queue, state = lot.queue, live(before, move, first_id)
    kept = is_kept(queue, lot, state)
    _count_ended(queue, state, count, kept=kept)
    ids = array("q", (first_id,))
    ended = RunsEnded(lot, state, ids, [count], at_ms, 0, "", kept, before)
    shard.effects.append(ended)
    drop_members(shard, lot, count, lot.payloads.bytes_of(first_id - lot.first_id, count))
    return queue


def leave_lot(shard: ShardState, first_id: int, count: int, move: Move) -> Lot:
    """Takes waiting members out of a lot and out of the count of their state; returns the lot."""
    lot = shard.lots.find(first_id)
    if lot is None:
        raise IllegalMove(f"job {first_id} is not live")
    index = first_id - lot.first_id
    if not all(lot.is_waiting(i) for i in range(index, index + count)):
        raise IllegalMove(f"jobs from {first_id} on do not wait")
    after(lot.state, move, first_id)
    lot.remove(index, count)
    if lot.state is JobState.READY:
        lot.queue.leave(lot, count)
    else:
        lot.queue.counts[lot.state] -= count
    return lot


APPLY: ApplyTable = {
    JobsCompleted: apply_jobs_completed,
    JobDied: apply_job_died,
    JobsCancelled: apply_jobs_cancelled,
}
