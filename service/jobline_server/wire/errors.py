"""JobError and Attempt between message and value.

An attempt has two messages: `job_pb2.Attempt` for operators, with timestamps, which is never read
back, and `store_pb2.StoredAttempt` for the store, in milliseconds.
"""

from __future__ import annotations

from jobline.v1 import job_pb2, store_pb2
from jobline_server.engine.values import Attempt, AttemptOutcome, JobError
from jobline_server.wire.times import fill_time


def error_from_message(message: job_pb2.JobError) -> JobError:
    """Returns the value of a JobError message."""
    return JobError(
        type=message.type, message=message.message, stack=message.stack, details=message.details
    )


def fill_error(message: job_pb2.JobError, error: JobError) -> None:
    """Fills a JobError message that is a field of another."""
    message.SetInParent()
    message.type = error.type
    message.message = error.message
    message.stack = error.stack
    message.details = error.details


def fill_attempt(message: job_pb2.Attempt, attempt: Attempt) -> None:
    """Fills an Attempt message that is a field of another."""
    message.attempt = attempt.attempt
    message.delivery = attempt.delivery
    message.worker = attempt.worker
    message.worker_version = attempt.version
    message.leased_at.SetInParent()
    fill_time(message.leased_at, attempt.leased_ms)
    message.ended_at.SetInParent()
    fill_time(message.ended_at, attempt.ended_ms)
    message.outcome = job_pb2.AttemptOutcome.ValueType(attempt.outcome)
    if attempt.error is not None:
        fill_error(message.error, attempt.error)


def attempt_from_stored(message: store_pb2.StoredAttempt) -> Attempt:
    """Returns the value of a stored attempt."""
    return Attempt(
        attempt=message.attempt,
        delivery=message.delivery,
        worker=message.worker,
        leased_ms=message.leased_ms,
        ended_ms=message.ended_ms,
        outcome=AttemptOutcome(message.outcome),
        version=message.worker_version,
        error=error_from_message(message.error) if message.HasField("error") else None,
    )


def fill_stored_attempt(message: store_pb2.StoredAttempt, attempt: Attempt) -> None:
    """Fills a StoredAttempt message that is a field of another."""
    message.attempt = attempt.attempt
    message.delivery = attempt.delivery
    message.worker = attempt.worker
    message.worker_version = attempt.version
    message.leased_ms = attempt.leased_ms
    message.ended_ms = attempt.ended_ms
    message.outcome = job_pb2.AttemptOutcome.ValueType(attempt.outcome)
    if attempt.error is not None:
        fill_error(message.error, attempt.error)
