"""Endings: the effects of facts that end jobs or change ended ones, and operations of operators.

The ended store keeps them, and waiters and watchers are notified. Recovery yields the same endings
again, so writing one twice must be harmless.

Jobs that ended in the same way share one ending. It holds the jobs themselves, which do not change
any more, or their lot, whose options and payloads never change.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from jobline_server.engine import effective
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot
from jobline_server.engine.operations import Operation
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.records import JobRecord
from jobline_server.engine.values import EndReason, JobError, JobState, QueueSettings

# Why members of a lot ended, by their state.
_REASONS = {
    JobState.COMPLETED: EndReason.NONE,
    JobState.CANCELLED: EndReason.CANCELLED,
    JobState.EXPIRED: EndReason.EXPIRED,
    JobState.DEAD: EndReason.EXPIRED,
}


@dataclass(slots=True)
class Ended:
    """The end of a job, for callers that wait for it. `state` None: it was deleted before."""

    id: int
    state: JobState | None
    ended_ms: int
    reason: EndReason = EndReason.NONE
    result: bytes = b""
    error: JobError | None = None


@dataclass(slots=True)
class RunsEnded:
    """Members of one lot that ended in the same way, as runs of ids. `delivery`, `worker`,
    `version` and `leased_ms` are those of their lease, 0 and "" if they were never leased. `before`
    is the state that all of them were in. The `starts` are one block of memory: several
    read them after a commit, when an object for each would be in no cache any more.
    """

    lot: Lot
    state: JobState
    starts: array[int]
    counts: list[int]
    ended_ms: int
    delivery: int
    worker: str
    kept: bool
    before: JobState = JobState.ACTIVE
    leased_ms: int = field(default=0, compare=False)
    version: str = field(default="", compare=False)

    @property
    def reason(self) -> EndReason:
        """Why they ended. A job to which anything else happens leaves its lot first."""
        return _REASONS[self.state]

    def ids(self) -> Iterator[int]:
        """Yields the ids."""
        for first_id, count in zip(self.starts, self.counts, strict=True):
            yield from range(first_id, first_id + count)

    def payloads(self, first_id: int, count: int) -> Payloads:
        """Returns the payloads of one of the runs."""
        return self.lot.payloads.part(first_id - self.lot.first_id, count)


@dataclass(slots=True)
class JobsEnded:
    """Jobs of one queue that ended in the same way; `job.holder` is the last holder of each.
    `results` are by id, for jobs with one; `reason`, `error` and `before`, the state that they were
    in, are the same for all. `settings` are those of the queue as they
    died, if it puts dead jobs back by itself. `for_readers` are jobs that would be removed as they
    complete if no others waited for them: they are due at once, and kept until those have ended.
    """

    state: JobState
    jobs: list[Job]
    ended_ms: int
    kept: bool
    results: Mapping[int, bytes] = field(default_factory=dict)
    reason: EndReason = EndReason.NONE
    error: JobError | None = None
    before: JobState = JobState.ACTIVE
    settings: QueueSettings | None = None
    for_readers: bool = False

    def retry_ms(self, job: Job) -> int | None:
        """Returns when one of the jobs is put back by itself; None if it is not."""
        if self.settings is None:
            return None
        rule = effective.auto_retry(job.options, self.settings, self.reason)
        return None if rule is None else rule.retry_ms(self.ended_ms, job.details.auto_retries)

    def record(self, job: Job) -> JobRecord:
        """Returns the record of one of the jobs, as it is stored."""
        record = job.record()
        record.ended_ms = self.ended_ms
        record.result = self.results.get(job.id, b"")
        record.reason = self.reason
        record.error = self.error
        record.retry_ms = self.retry_ms(job) or 0
        return record


@dataclass(slots=True)
class EndedChange:
    """Ended jobs that became STALE, to be deleted at `delete_ms` unless they have a time of their
    own for it, or (`state` None) were deleted or retried.
    """

    state: JobState | None
    starts: list[int]
    counts: list[int]
    at_ms: int
    delete_ms: int = 0


@dataclass(slots=True)
class QueueGone:
    """A queue was deleted with its ended jobs and its `live` ones, as runs of ids."""

    queue: str
    at_ms: int = 0
    live: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class OperationNoted:
    """An operator did something, which is kept beside the ended jobs."""

    operation: Operation


Ending = RunsEnded | JobsEnded | EndedChange | QueueGone | OperationNoted
