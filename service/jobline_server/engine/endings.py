"""Endings: the effects of facts on jobs that ended.

The ended store keeps them, and waiters and watchers are notified. A recovered journal yields the
same endings again: writing one twice must do no harm.

Jobs that ended alike share one entry. It holds the jobs themselves, which nothing changes any
more, or the lot they stood in, whose options and payloads never change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.records import JobRecord
from jobline_server.engine.values import EndReason, JobError, JobState


@dataclass(slots=True)
class RunsEnded:
    """Members of one lot that ended alike, as runs of ids: what they share is the lot's.
    `delivery`, `worker` and `leased_ms` are those of their lease, 0 and "" if they were never
    handed out.
    `before` is the state that all of them were in.
    """

    lot: Lot
    state: JobState
    starts: list[int]
    counts: list[int]
    ended_ms: int
    delivery: int
    worker: str
    kept: bool
    before: JobState = JobState.ACTIVE
    leased_ms: int = field(default=0, compare=False)

    def ids(self) -> Iterator[int]:
        """The ids, one by one."""
        for first_id, count in zip(self.starts, self.counts, strict=True):
            yield from range(first_id, first_id + count)

    def payloads(self, first_id: int, count: int) -> Payloads:
        """The payloads of one of the runs."""
        return self.lot.payloads.part(first_id - self.lot.first_id, count)


@dataclass(slots=True)
class JobsEnded:
    """Jobs of one queue that ended alike; `job.holder` is who had each of them last. `results` are
    by id, of those that left one; `reason`, `error` and `before`, the state they were in, are
    everybody's.
    """

    state: JobState
    jobs: list[Job]
    ended_ms: int
    kept: bool
    results: Mapping[int, bytes] = field(default_factory=dict)
    reason: EndReason = EndReason.NONE
    error: JobError | None = None
    before: JobState = JobState.ACTIVE

    def record(self, job: Job) -> JobRecord:
        """One of the jobs as it is written down whole."""
        record = job.record()
        record.ended_ms = self.ended_ms
        record.result = self.results.get(job.id, b"")
        record.reason = self.reason
        record.error = self.error
        return record


@dataclass(slots=True)
class EndedChange:
    """Ended jobs that became STALE, or (`state` None) are no longer ended: deleted or put back."""

    state: JobState | None
    starts: list[int]
    counts: list[int]
    at_ms: int


@dataclass(slots=True)
class QueueGone:
    """All jobs of a queue are deleted: what was kept of it, and `live` jobs, as runs of ids."""

    queue: str
    at_ms: int = 0
    live: list[tuple[int, int]] = field(default_factory=list)


Ending = RunsEnded | JobsEnded | EndedChange | QueueGone
