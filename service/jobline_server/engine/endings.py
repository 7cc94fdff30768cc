"""Endings: what a shard tells the outside about jobs that ended, in order.

The finished file keeps them, waiters and watchers are told of them. They follow from the facts, so a
recovered journal yields the same endings again: whoever keeps them must not mind a repeat.
"""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine.entries import JobRecord
from jobline_server.engine.job import Job
from jobline_server.engine.values import EndReason, JobError, JobOptions, JobState


@dataclass(slots=True)
class EndedRun:
    """Plain jobs that ended alike."""

    queue: str
    state: JobState
    first_id: int
    options: JobOptions
    payloads: list[bytes]
    pushed_ms: int
    ended_ms: int
    delivery: int
    worker: str
    kept: bool


@dataclass(slots=True)
class EndedJob:
    """One job that ended. `job` is no longer live, so nothing changes it any more."""

    state: JobState
    job: Job
    worker: str
    ended_ms: int
    kept: bool
    result: bytes = b""
    reason: EndReason = EndReason.NONE
    error: JobError | None = None

    def record(self) -> JobRecord:
        """The job as it is written down whole."""
        record = self.job.record()
        record.worker = self.worker
        record.ended_ms = self.ended_ms
        record.result = self.result
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
    """All ended jobs of a queue are deleted."""

    queue: str


Ending = EndedRun | EndedJob | EndedChange | QueueGone
