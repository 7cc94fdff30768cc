"""Facts of jobs that an operator changed, and of forgotten keys. `entries` lists all facts."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine.values import JobState


@dataclass(slots=True)
class JobUpdated:
    """A waiting job was changed; a field of `None` changes nothing. It becomes READY at
    `run_at_ms`, 0 for at once.
    """

    at_ms: int
    queue: str
    id: int
    payload: bytes | None = None
    priority: int | None = None
    run_at_ms: int | None = None
    # ----
    before: JobState = JobState.READY  # its states before and after; `apply` sets them
    after: JobState = JobState.READY


@dataclass(slots=True)
class KeyForgotten:
    """A job key names no job any more, although its window has not ended."""

    at_ms: int
    queue: str
    key_hash: bytes
