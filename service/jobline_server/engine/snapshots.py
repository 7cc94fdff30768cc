"""Snapshots: what a fact found of jobs that go on, for the history.

An event of the history says what the server knew of a job when the fact was applied: its name, its
attempts, when it was leased. A fact names only the job, and by the time of its commit the job may
be leased again, or gone. So `apply` notes it as an effect, before it changes the job; where no
history is kept, that is one look at a flag. Jobs that end need none: their endings hold them, and
they do not change any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import JobOptions, JobState

if TYPE_CHECKING:
    from jobline_server.engine.state import ShardState


class JobSnapshot(NamedTuple):
    """A single job as it was. `first_leased_ms` is 0 if it was never leased, or if its history does
    not reach back so far; `leased_ms` and `holder` are those of its last lease.
    """

    id: int
    queue: str
    options: JobOptions
    ties: Ties
    state: JobState
    payload_bytes: int
    pushed_ms: int
    ready_ms: int
    run_at_ms: int
    attempts: int
    stalls: int
    releases: int
    delivery: int
    lease_ms: int
    leased_ms: int
    first_leased_ms: int
    holder: Holder | None


class JobsNoted(NamedTuple):
    """Single jobs, in the order in which the fact names them."""

    jobs: Sequence[JobSnapshot]


class RunsNoted(NamedTuple):
    """Members of a lot in one state, as runs of ids; with the lease that they have or had."""

    lot: Lot
    state: JobState
    starts: Sequence[int]
    counts: Sequence[int]
    ready_ms: int
    lease: RunLease | None = None


def snapshot_of(job: Job) -> JobSnapshot:
    """Returns what is known of a job now."""
    history, state = job.details.history, job.state
    if history:
        # The oldest are dropped from a long history.
        first_leased_ms = history[0].leased_ms if history[0].attempt == 1 else 0
    else:
        first_leased_ms = job.leased_ms
    return JobSnapshot(
        job.id,
        job.queue.name,
        job.options,
        job.ties,
        state,
        len(job.payload),
        job.pushed_ms,
        job.ready_ms,
        job.run_at_ms,
        job.attempts,
        job.stalls,
        job.releases,
        job.delivery,
        job.lease_ms,
        job.leased_ms,
        first_leased_ms,
        job.holder,
    )


def note_jobs(shard: ShardState, jobs: Iterable[Job]) -> None:
    """Notes single jobs, if a history is kept. Volatile ones are in none."""
    if shard.load.keeps_history:
        noted = [snapshot_of(job) for job in jobs if not job.volatile]
        if noted:
            shard.effects.append(JobsNoted(noted))


def note_runs(
    shard: ShardState, lot: Lot, runs: Iterable[tuple[int, int]], lease: RunLease | None = None
) -> None:
    """Notes waiting or leased members of a lot, if a history is kept."""
    if shard.load.keeps_history and not lot.volatile:
        starts, counts = zip(*runs, strict=True) if (runs := list(runs)) else ((), ())
        state = lot.state if lease is None else JobState.ACTIVE
        shard.effects.append(RunsNoted(lot, state, starts, counts, lot.ready_ms, lease))


def note_lot(shard: ShardState, lot: Lot) -> None:
    """Notes all members of a lot that is about to be deleted, if a history is kept."""
    if shard.load.keeps_history:
        note_runs(shard, lot, lot.waiting_runs())
        for lease in lot.leases:
            note_runs(shard, lot, [(job_id, 1) for job_id in lease.open_ids()], lease)
