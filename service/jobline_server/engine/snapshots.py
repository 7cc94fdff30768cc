"""Snapshots: what a fact found of jobs that go on, for the history.

An event of the history says what the server knew of a job when the fact was applied: its name, its
attempts, when it was leased. A fact names only the job, and by the time of its commit the job may
be leased again, or gone. So `apply` notes it as an effect, before it changes the job; where no
history is kept, that is one look at a flag. Jobs that end need none: their endings hold them, and
they do not change any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import JobOptions, JobState


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


def snapshot_of(job: Job, state: JobState | None = None) -> JobSnapshot:
    """Returns what is known of a job now; of one that has ended, with the `state` before."""
    history = job.details.history
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
        job.state if state is None else state,
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
