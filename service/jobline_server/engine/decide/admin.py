"""Admin: promotes, cancels, retries and deletes jobs; ages out, deletes and evicts ended ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

from jobline_server.engine import effective
from jobline_server.engine.decide.unique_holders import is_key_taken
from jobline_server.engine.entries import (
    CancelRequested,
    JobsAgedOut,
    JobsCancelled,
    JobsDeleted,
    JobsReady,
    JobsRetried,
)
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.operations import CancelledRuns
from jobline_server.engine.queue import Queue
from jobline_server.engine.records import JobRecord
from jobline_server.engine.values import JobState, Now
from jobline_server.engine.view import ShardView

NO_OUTCOMES: Mapping[int, JobState] = MappingProxyType({})


def decide_promote(shard: ShardView, now: Now, ids: Iterable[int]) -> list[int]:
    """Makes SCHEDULED jobs READY, in this order; returns the ids that are not SCHEDULED."""
    skipped: list[int] = []
    chosen: dict[int, tuple[str, bool]] = {}
    for job_id in ids:
        if shard.state_of(job_id) is not JobState.SCHEDULED:
            skipped.append(job_id)
            continue
        owner = _owner(shard, job_id)
        chosen[job_id] = (owner.queue.name, owner.volatile)
    for (queue, volatile), group in groupby(chosen, chosen.__getitem__):
        fact = JobsReady(now.wall_ms, queue, list(group), [], promoted=True)
        shard.emit(fact, volatile=volatile)
    return skipped


def decide_cancel(
    shard: ShardView, now: Now, ids: Iterable[int], runs: CancelledRuns | None = None
) -> tuple[int, int, list[int]]:
    """Cancels waiting jobs and asks the workers of active ones to stop. Returns how many jobs are
    CANCELLED, how many are asked to stop, and the ids that are not live. `runs` gets the READY and
    SCHEDULED jobs that are kept, with their times; what BLOCKED ones wait for goes on, so they
    could not be put back.
    """
    cancelled: dict[bool, dict[int, None]] = {}
    requested: dict[tuple[str, bool], dict[int, None]] = {}
    skipped: list[int] = []
    for job_id in ids:
        state = shard.state_of(job_id)
        if state is None:
            skipped.append(job_id)
            continue
        owner = _owner(shard, job_id)
        if state is not JobState.ACTIVE:
            cancelled.setdefault(owner.volatile, {})[job_id] = None
            if runs is not None and state is not JobState.BLOCKED and not owner.volatile:
                runs.add(job_id, owner.run_at_ms if state is JobState.SCHEDULED else 0)
        else:
            requested.setdefault((owner.queue.name, owner.volatile), {})[job_id] = None
    for waiting_volatile, batch in cancelled.items():
        starts, counts = as_runs(shard, batch)
        shard.emit(JobsCancelled(now.wall_ms, starts, counts), volatile=waiting_volatile)
    for (queue, volatile), batch in requested.items():
        shard.emit(CancelRequested(now.wall_ms, queue, list(batch)), volatile=volatile)
    return sum(map(len, cancelled.values())), sum(map(len, requested.values())), skipped


def decide_delete_waiting(shard: ShardView, now: Now, ids: Iterable[int]) -> tuple[int, list[int]]:
    """Deletes waiting jobs; returns how many, and the ids that are not waiting."""
    skipped: list[int] = []
    chosen: dict[tuple[str, JobState, bool], dict[int, None]] = {}
    for job_id in ids:
        state = shard.state_of(job_id)
        if state is None or state is JobState.ACTIVE:
            skipped.append(job_id)
            continue
        owner = _owner(shard, job_id)
        chosen.setdefault((owner.queue.name, state, owner.volatile), {})[job_id] = None
    for (queue, state, volatile), batch in chosen.items():
        starts, counts = as_runs(shard, batch)
        shard.emit(JobsDeleted(now.wall_ms, queue, state, starts, counts), volatile=volatile)
    return sum(map(len, chosen.values())), skipped


def decide_retry(
    shard: ShardView,
    now: Now,
    ended: Sequence[tuple[JobRecord, JobState]],
    *,
    automatic: bool = False,
    outcomes: Mapping[int, JobState] = NO_OUTCOMES,
) -> list[int]:
    """Makes ended jobs READY again, attempts and stalls at zero. Returns the ids that are live,
    that come twice, whose queue was deleted after the caller read them, or whose unique key another
    job holds. `outcomes` are the states in which STALE ones ended.

    The fact takes over the records, which are reset in place: copying would be most of the work.
    """
    skipped: list[int] = []
    chosen: dict[int, tuple[JobRecord, JobState]] = {}
    taken: set[tuple[str, str]] = set()
    for record, state in ended:
        is_live = shard.state_of(record.id) is not None
        if is_live or record.id in chosen or not _is_of(shard.queues.get(record.queue), record.id):
            skipped.append(record.id)
            continue
        if record.ties.unique_key:
            key = record.queue, record.ties.unique_key
            if key in taken or is_key_taken(shard, shard.age.at(now), record):
                skipped.append(record.id)
                continue
            taken.add(key)
        record.start_over(automatic=automatic)
        chosen[record.id] = (record, state)
    if chosen:
        records = [record for record, _ in chosen.values()]
        states = [state for _, state in chosen.values()]
        ends: list[JobState] = []
        if outcomes and any(record.options.rules.batch_id for record in records):
            ends = [outcomes.get(record.id, state) for record, state in chosen.values()]
        shard.emit(JobsRetried(now.wall_ms, records, states, automatic, ends))
    return skipped


def decide_age_out(
    shard: ShardView, now: Now, queue: str, state: JobState, runs: Sequence[tuple[int, int]]
) -> None:
    """Ages out ended jobs, as runs of ids: they become STALE."""
    _age_out(shard, now, queue, state, runs)


def decide_pass_over(
    shard: ShardView, now: Now, queue: str, state: JobState, runs: Sequence[tuple[int, int]]
) -> None:
    """Makes ended jobs STALE that would be deleted if no live job might read their results: they
    are deleted as soon as none may.
    """
    _age_out(shard, now, queue, state, runs, delete_after_ms=0)


def _age_out(
    shard: ShardView,
    now: Now,
    queue: str,
    state: JobState,
    runs: Sequence[tuple[int, int]],
    *,
    delete_after_ms: int | None = None,
) -> None:
    """Makes ended jobs STALE; they are deleted after this time, or that of their queue."""
    starts, counts = _left_of(shard.queues.get(queue), runs)
    if starts:
        if delete_after_ms is None:
            delete_after_ms = effective.delete_after_ms(shard.queues[queue].settings)
        shard.emit(JobsAgedOut(now.wall_ms, queue, state, starts, counts, delete_after_ms))


def decide_delete_ended(
    shard: ShardView, now: Now, queue: str, state: JobState, runs: Sequence[tuple[int, int]]
) -> None:
    """Deletes ended jobs, as runs of ids."""
    _delete_ended(shard, now, queue, state, runs, evicted=False)


def decide_evict(
    shard: ShardView, now: Now, queue: str, state: JobState, runs: Sequence[tuple[int, int]]
) -> None:
    """Deletes ended jobs, as runs of ids, because their queue keeps no more of them."""
    _delete_ended(shard, now, queue, state, runs, evicted=True)


def _delete_ended(
    shard: ShardView,
    now: Now,
    queue: str,
    state: JobState,
    runs: Sequence[tuple[int, int]],
    *,
    evicted: bool,
) -> None:
    starts, counts = _left_of(shard.queues.get(queue), runs)
    if starts:
        shard.emit(JobsDeleted(now.wall_ms, queue, state, starts, counts, evicted))


def _is_of(queue: Queue | None, job_id: int) -> bool:
    """Returns whether an ended job is of this queue, not of a deleted one that had its name: those
    jobs went with their queue and are not in the counts of this one.
    """
    return queue is not None and job_id >= queue.born_id


def _left_of(queue: Queue | None, runs: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Returns the runs of ended jobs that are of this queue: first ids, and numbers of jobs."""
    left = [run for run in runs if _is_of(queue, run[0])]
    return [start for start, _ in left], [count for _, count in left]


def _owner(shard: ShardView, job_id: int) -> Job | Lot:
    owner = shard.jobs.find(job_id) or shard.lots.find(job_id)
    if owner is None:
        raise LookupError(job_id)
    return owner


def as_runs(shard: ShardView, ids: Iterable[int]) -> tuple[list[int], list[int]]:
    """Returns waiting ids as runs: neighbours of one lot together, single jobs alone."""
    starts: list[int] = []
    counts: list[int] = []
    lot: Lot | None = None
    for job_id in sorted(ids):
        lot_of_job = None if job_id in shard.jobs else shard.lots.find(job_id)
        if lot_of_job is not None and lot_of_job is lot and starts[-1] + counts[-1] == job_id:
            counts[-1] += 1
        else:
            starts.append(job_id)
            counts.append(1)
        lot = lot_of_job
    return starts, counts
