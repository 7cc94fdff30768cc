"""What jobs count as that age, said as plainly as can be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jobline_server.engine.values import QueueSettings
from tests.unit.engine.reference_jobs import ModelJob


def priority(settings: QueueSettings, wall_ms: int, job: ModelJob) -> int:
    """What a job counts as that waits: as much higher as it has waited times of `after_ms`."""
    ageing, own = settings.ageing, job.options.priority
    if ageing is None:
        return own
    times = (wall_ms - job.waits_from_ms) // ageing.after_ms
    risen = times * ageing.step
    return own + (risen if ageing.limit is None else min(risen, ageing.limit))


def by_age(settings: QueueSettings, wall_ms: int, jobs: Iterable[ModelJob]) -> Iterator[ModelJob]:
    """Yields jobs, which come by priority and place, as they go. Of the first of each priority, and
    of each tenant, goes the one that counts as the highest; of equals the one that stands first.
    """
    if settings.ageing is None:
        yield from jobs
        return
    lines: dict[tuple[str, int], list[ModelJob]] = {}
    for job in jobs:
        tenant = job.group if settings.fair else ""
        lines.setdefault((tenant, job.options.priority), []).append(job)
    while lines:
        first = min(lines, key=lambda key: _turn(settings, wall_ms, lines[key][0]))
        yield lines[first].pop(0)
        if not lines[first]:
            del lines[first]


def as_told(jobs: Iterable[ModelJob], told: Sequence[int]) -> Iterable[ModelJob]:
    """Returns jobs in their order; if any pass limiters, as the engine has handed them out: what
    these hold back had its turn all the same, and hides what is behind it.
    """
    listed = list(jobs)
    if not any(job.options.rules.limiters for job in listed):
        return listed
    by_id = {job.id: job for job in listed}
    return [by_id[job_id] for job_id in told if job_id in by_id]


def _turn(settings: QueueSettings, wall_ms: int, job: ModelJob) -> tuple[int, float]:
    return -priority(settings, wall_ms, job), job.place
