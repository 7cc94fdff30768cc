"""What workers reported on a job: it is kept in memory like a payload, and counts as one does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jobline_server.engine.job_log import JobLog
from jobline_server.engine.phases import FinishedPhase, results_bytes
from jobline_server.engine.values import Attempt, JobError


def reported_bytes(
    log: JobLog | None,
    phases: Iterable[FinishedPhase],
    checkpoint: bytes,
    history: Sequence[Attempt],
) -> int:
    """Returns the bytes that count towards those of the server: of the log, of the results of
    phases, of the worker's checkpoint and of the errors of attempts.
    """
    errors = sum([error_bytes(attempt.error) for attempt in history]) if history else 0
    return (0 if log is None else log.bytes) + results_bytes(phases) + len(checkpoint) + errors


def error_bytes(error: JobError | None) -> int:
    """Returns about how many bytes an error has."""
    if error is None:
        return 0
    return len(error.type) + len(error.message) + len(error.stack) + len(error.details)
