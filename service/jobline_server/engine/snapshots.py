"""Snapshots: what a fact found of jobs that go on, for the history.

An event of the history says what the server knew of a job when the fact was applied: its name, its
attempts, when it was leased. A fact names only the job, and by the time of its commit the job may
be leased again, or gone. So `apply` notes it as an effect, before it changes the job; where no
history is kept, that is one look at a flag. Jobs that end need none: their endings hold them, and
they do not change any more.

Jobs are noted in columns, so that a thousand of them cost a dozen lists and no object each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from jobline_server.engine.holder import Holder
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import JobOptions, JobState

T = TypeVar("T")
Column: TypeAlias = T | list[T]
"""One value that all jobs share, or a list with one for each."""


class JobsNoted(NamedTuple):
    """Single jobs of one queue in one state as they were, in columns, in the order in which the
    fact names them. `first_leased_ms` is 0 if a job was never leased, or if its history does not
    reach back so far; `leased_ms` and `holder` are those of its last lease.
    """

    queue: str
    state: JobState
    ids: list[int]
    options: Column[JobOptions]
    ties: Column[Ties]
    payload_bytes: Column[int]
    pushed_ms: Column[int]
    ready_ms: Column[int]
    run_at_ms: Column[int]
    attempts: Column[int]
    stalls: Column[int]
    releases: Column[int]
    delivery: Column[int]
    lease_ms: Column[int]
    leased_ms: Column[int]
    first_leased_ms: Column[int]
    holder: Column[Holder | None]


class RunsNoted(NamedTuple):
    """Members of a lot in one state, as runs of ids; with the lease that they have or had."""

    lot: Lot
    state: JobState
    starts: Sequence[int]
    counts: Sequence[int]
    ready_ms: int
    lease: RunLease | None = None


def jobs_noted(jobs: Sequence[Job], state: JobState | None = None) -> JobsNoted:
    """Returns what is known of jobs now, which are of one queue and state, one at least; of those
    that have ended, with the `state` before.
    """
    job = jobs[0]
    if len(jobs) == 1:
        return JobsNoted(
            job.queue.name,
            job.state if state is None else state,
            [job.id],
            job.options,
            job.ties,
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
            _first_leased_ms(job),
            job.holder,
        )
    return JobsNoted(
        job.queue.name,
        job.state if state is None else state,
        [each.id for each in jobs],
        _column([each.options for each in jobs]),
        _column([each.ties for each in jobs]),
        _column([len(each.payload) for each in jobs]),
        _column([each.pushed_ms for each in jobs]),
        _column([each.ready_ms for each in jobs]),
        _column([each.run_at_ms for each in jobs]),
        _column([each.attempts for each in jobs]),
        _column([each.stalls for each in jobs]),
        _column([each.releases for each in jobs]),
        _column([each.delivery for each in jobs]),
        _column([each.lease_ms for each in jobs]),
        _column([each.leased_ms for each in jobs]),
        _column([_first_leased_ms(each) for each in jobs]),
        _column([each.holder for each in jobs]),
    )


def _column(values: list[T]) -> Column[T]:
    first = values[0]
    is_shared = values[-1] == first and values.count(first) == len(values)
    return first if is_shared else values


def _first_leased_ms(job: Job) -> int:
    history = job.details.history
    if not history:
        return job.leased_ms
    # The oldest are dropped from a long history.
    return history[0].leased_ms if history[0].attempt == 1 else 0


def alike(jobs: Sequence[Job]) -> list[Sequence[Job]]:
    """Returns jobs in parts of neighbours that are of one queue and in one state."""
    parts: list[Sequence[Job]] = []
    begin = 0
    for index in range(1, len(jobs)):
        if jobs[index].queue is not jobs[begin].queue or jobs[index].state != jobs[begin].state:
            parts.append(jobs[begin:index])
            begin = index
    parts.append(jobs[begin:])
    return parts
