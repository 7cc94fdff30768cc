"""Counts the active jobs of a shard at the limiters of the server, as it opens and as it goes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jobline_server.engine.job import Job
from jobline_server.engine.limiters import Limiters, LimiterSettings
from jobline_server.engine.lot import Lot
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import JobState, Now


def join(
    limiters: Limiters,
    own: Mapping[str, LimiterSettings],
    active: Iterable[tuple[JobRules, int]],
    now: Now,
) -> None:
    """Puts the limiters of a shard that opens in force, and counts its active jobs."""
    for settings in own.values():
        limiters.put(settings, now.mono_ms)
        limiters.restart(settings.name, now.mono_ms)
    for rules, count in active:
        limiters.count_active(rules, count)


def active_of(jobs: Iterable[Job], lots: Iterable[Lot]) -> Iterator[tuple[JobRules, int]]:
    """Yields the rules of active jobs that pass limiters, and how many jobs have them."""
    for job in jobs:
        if job.state is JobState.ACTIVE and job.options.rules.limiters:
            yield job.options.rules, 1
    for lot in lots:
        if lot.leases and lot.options.rules.limiters:
            yield lot.options.rules, sum(lease.remaining for lease in lot.leases)
