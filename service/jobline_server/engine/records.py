"""The record of a job: all its fields, for the ended store and for retries."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jobline_server.engine.job_log import JobLog
from jobline_server.engine.phases import FinishedPhase
from jobline_server.engine.reported import reported_bytes
from jobline_server.engine.ties import NO_CLAIM, NO_TIES, Ties
from jobline_server.engine.values import (
    Attempt,
    EndReason,
    JobError,
    JobOptions,
    LeaseReason,
)


@dataclass(slots=True)
class JobRecord:
    """All fields of a job, as the ended store keeps them and `JobsRetried` carries them."""

    id: int
    queue: str
    options: JobOptions
    payload: bytes
    pushed_ms: int
    job_key: str = ""
    attempts: int = 0
    stalls: int = 0
    releases: int = 0
    delivery: int = 0
    history: tuple[Attempt, ...] = ()
    worker_checkpoint: bytes = b""
    progress: float = 0.0
    progress_message: str = ""
    worker: str = ""
    ended_ms: int = 0
    reason: EndReason = EndReason.NONE
    result: bytes = b""
    error: JobError | None = None
    lease_reason: LeaseReason = LeaseReason.FIRST
    ties: Ties = NO_TIES
    log: JobLog | None = None
    auto_retries: int = 0
    retry_ms: int = 0
    phases: tuple[FinishedPhase, ...] = ()

    def held_bytes(self) -> int:
        """Returns the bytes that it takes of the server's while it is live."""
        return len(self.payload) + reported_bytes(
            self.log, self.phases, self.worker_checkpoint, self.history
        )

    def start_over(self, *, automatic: bool = False) -> None:
        """Resets attempts, stalls and releases, and clears the result, the error and the claim
        on a unique key. Automatic retries are counted until a retry by hand.
        """
        self.attempts = self.stalls = self.releases = self.retry_ms = 0
        self.auto_retries = self.auto_retries + 1 if automatic else 0
        self.result, self.error = b"", None
        if self.ties.claim is not NO_CLAIM:
            self.ties = replace(self.ties, claim=NO_CLAIM)
