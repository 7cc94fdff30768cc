"""Timeouts: when attempts have taken too long, in monotonic time.

A lease with a timeout has one entry, a run as well, under its first id. Entries of leases that were
settled are not searched for: each new one sweeps a few, so they never are many more than the
leases. None of this is a fact: after a restart attempts have their full time again, as leases do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from jobline_server.engine import effective
from jobline_server.engine.clocks import LeaseClocks
from jobline_server.engine.job import Job
from jobline_server.engine.lookups import Jobs, Lots
from jobline_server.engine.lot import RunLease
from jobline_server.engine.values import JobState

# Enum attribute access is slow before Python 3.12.
_ACTIVE = JobState.ACTIVE


class _Shard(Protocol):
    @property
    def jobs(self) -> Jobs[Job]: ...

    @property
    def lots(self) -> Lots: ...

    @property
    def clocks(self) -> LeaseClocks: ...


def start_timeouts(shard: _Shard, jobs: Iterable[Job]) -> None:
    """Has the attempts of jobs that are leased now time out, if they have a timeout."""
    for job in jobs:
        timeout_ms = effective.timeout_ms(job.options, job.queue.settings)
        if timeout_ms:
            time_job(shard, job, shard.clocks.mono_ms + timeout_ms)


def time_job(shard: _Shard, job: Job, ends_ms: int) -> None:
    """Has the lease of a job time out at this time."""
    job.writable_details().times_out = (ends_ms, job.delivery)
    _add(shard, ends_ms, job.id)


def start_run_timeout(shard: _Shard, lease: RunLease) -> None:
    """Has the attempts of a run that is leased now time out, if they have a timeout."""
    timeout_ms = effective.timeout_ms(lease.lot.options, lease.lot.queue.settings)
    if timeout_ms:
        lease.times_out_ms = shard.clocks.mono_ms + timeout_ms
        _add(shard, lease.times_out_ms, lease.lot.first_id + lease.start)


def timed_at(shard: _Shard, ends_ms: int, first_id: int) -> tuple[Job | None, RunLease | None]:
    """Returns the job with this id, and the run that begins with it, each if it is leased and times
    out at this time.
    """
    job, lot = shard.jobs.find(first_id), shard.lots.find(first_id)
    if job is not None and (
        job.state is not _ACTIVE or job.details.times_out != (ends_ms, job.delivery)
    ):
        job = None
    run = lot.lease_at(first_id - lot.first_id) if lot is not None else None
    if run is not None and (
        run.times_out_ms != ends_ms or run.lot.first_id + run.start != first_id
    ):
        run = None
    return job, run


def _add(shard: _Shard, ends_ms: int, first_id: int) -> None:
    timeouts = shard.clocks.timeouts
    timeouts.sweep(1, lambda *entry: any(timed_at(shard, *entry)))
    timeouts.add(ends_ms, first_id)
