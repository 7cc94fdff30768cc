"""Entries of what workers report."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine.job_log import LogLine


@dataclass(slots=True)
class JobReported:
    """A worker reported on a job; a field of `None` changes nothing."""

    at_ms: int
    queue: str
    id: int
    progress: float | None
    message: str | None
    worker_checkpoint: bytes | None


@dataclass(slots=True)
class JobLogged:
    """A worker wrote to the log of a job, which may have up to `bytes_max` with these lines."""

    at_ms: int
    queue: str
    id: int
    lines: list[LogLine]
    bytes_max: int


@dataclass(slots=True)
class PhaseCompleted:
    """A worker finished the next phase of a job, whose `progress` is that of the job with it."""

    at_ms: int
    queue: str
    id: int
    phase: str
    result: bytes
    progress: float
