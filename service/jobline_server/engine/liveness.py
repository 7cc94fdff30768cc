"""Which of many jobs are not live. Most are members of lots that nothing has happened to since they
were pushed: one look at such a lot says it of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from jobline_server.engine.job import Job
from jobline_server.engine.lookups import Jobs, Lots
from jobline_server.engine.values import JobState, ids_of_shard


class LiveJobs(Protocol):
    """The live jobs of a shard."""

    @property
    def number(self) -> int:
        """The number of the shard."""

    @property
    def jobs(self) -> Jobs[Job]:
        """Single jobs."""

    @property
    def lots(self) -> Lots:
        """All other live jobs."""

    def state_of(self, job_id: int) -> JobState | None:
        """Returns the state of a live job; None if it is not live."""


def not_live(shard: LiveJobs, ids: Iterable[int]) -> list[int]:
    """Returns those of the jobs that are not live in this shard, in the order of their ids."""
    own, found = ids_of_shard(shard.number), list[int]()
    live = range(0)
    in_order = sorted(ids)
    jobs, _ = shard.jobs.find_many(in_order)
    # Members of a lot come one after the other, whatever other jobs stand between them.
    for job_id, job in zip(in_order, jobs, strict=True):
        if job is not None or job_id in live:
            continue
        lot = shard.lots.find(job_id) if job_id in own else None
        if lot is not None and not (lot.cursor or lot.holes or lot.leases):
            live = range(lot.first_id, lot.end_id())
        elif lot is None or shard.state_of(job_id) is None:
            found.append(job_id)
    return found
