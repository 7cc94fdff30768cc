"""Applies the fact that makes SCHEDULED jobs READY."""

from __future__ import annotations

from jobline_server.engine.apply import groups
from jobline_server.engine.apply.bookkeeping import mark_job, mark_lot, single
from jobline_server.engine.apply.fair_lanes import make_ready_fairly
from jobline_server.engine.apply.lanes import put_at_tail, put_in_lane
from jobline_server.engine.apply.noted import note_jobs, note_runs
from jobline_server.engine.apply.table import ApplyTable
from jobline_server.engine.entries import JobsReady
from jobline_server.engine.job import Job
from jobline_server.engine.queue import Queue
from jobline_server.engine.state import ShardState
from jobline_server.engine.states import Move, live
from jobline_server.engine.values import JobState

_SCHEDULED = JobState.SCHEDULED


def apply_jobs_ready(shard: ShardState, fact: JobsReady, offset: int) -> None:
    """Moves SCHEDULED lots and jobs to the tail of their lanes."""
    queue = shard.queues[fact.queue]
    move = Move.PROMOTED if fact.promoted else Move.DUE
    runs: list[tuple[int, int]] = []
    for first_id in fact.lots:
        lot = shard.lots.lots[first_id]
        lot.state = live(lot.state, move, first_id)
        lot.run_at_ms = 0
        lot.ready_ms = fact.at_ms
        lot.offset = 0 if lot.volatile else offset
        jobs = lot.waiting()
        runs += (waiting := lot.waiting_runs())
        note_runs(shard, lot, waiting)
        queue.counts[_SCHEDULED] -= jobs
        put_in_lane(shard, lot, jobs)
        mark_lot(shard, lot)
    fact.runs = runs
    if fact.ids:
        _make_jobs_ready(shard, queue, fact, move, offset)
    if fact.promoted:
        # Due jobs were taken off the heap of delayed ones before; promoted ones are still on it.
        shard.unschedule(len(fact.lots) + len(fact.ids))
    shard.wake(queue)


def _make_jobs_ready(
    shard: ShardState, queue: Queue, fact: JobsReady, move: Move, offset: int
) -> None:
    found, part = shard.jobs.find_many(fact.ids)
    jobs = [
        single(shard, job_id) if job is None else job
        for job_id, job in zip(fact.ids, found, strict=True)
    ]
    for job in jobs:
        job.state = live(job.state, move, job.id)
        job.note_ready(fact.at_ms)
    note_jobs(shard, jobs)
    queue.counts[_SCHEDULED] -= len(jobs)
    plain: list[Job] = []
    for job in jobs:
        if queue.groups or queue.fair is not None or job.volatile or job.options.rules.lifo:
            make_ready(shard, job, offset)
        else:
            job.run_at_ms = 0
            plain.append(job)
    if plain:
        put_at_tail(shard, queue, plain, offset)
        part = part if len(plain) == len(jobs) else None
        shard.changes.jobs.to_write.add_many([job.id for job in plain], part)


def make_ready(shard: ShardState, job: Job, offset: int) -> None:
    """Puts a job, which the caller has made READY, into its lane; one of a group only when it is
    its turn.
    """
    job.run_at_ms = 0
    if job.queue.fair is not None:
        make_ready_fairly(shard, job.queue, job, offset)
        return
    if job.ties.group:
        groups.make_ready(shard, job, offset)
        return
    job.offset = 0 if job.volatile else offset
    put_in_lane(shard, job, 1)
    shard.wake(job.queue)
    mark_job(shard, job)


APPLY: ApplyTable = {JobsReady: apply_jobs_ready}
