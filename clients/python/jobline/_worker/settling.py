"""Settles jobs by what their handlers returned or raised."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

from jobline import _codec as codec
from jobline._cancel_reason import CancelReason
from jobline._context import Context
from jobline._enums import FailAction, ReleaseReason
from jobline._leased import LeasedJob
from jobline._outcomes import Cancel, Dead, Outcome, RateLimited, Retry, Snooze, Stopped
from jobline._release_item import release_item
from jobline._requests import fail_item
from jobline._values import JobError
from jobline._worker.log import attempt_failed, attempt_given_up
from jobline._worker.shared_session import SharedSession
from jobline.errors import CodecError, InvalidArgument, SealError
from jobline.v1 import job_pb2
from jobline.v1 import job_service_pb2 as pb

logger = logging.getLogger("jobline.worker")

# Delay of a job whose name has no handler here. Another worker may have one; without the delay the
# job would return at once.
UNHANDLED_DELAY = 5.0
# The server refuses a larger one, and with it the stream.
RESULT_BYTES_MAX = 1 << 20
STOPPED = JobError("Interrupted", "the worker stopped while the job ran")


def settle_value(session: SharedSession, context: Context, value: Any) -> None:
    """Settles a job by the value that its handler returned: a result or an outcome. Raises
    CodecError for a value that cannot be a result.
    """
    if value is None:
        session.ack(context.job)
    elif isinstance(value, Outcome):
        settle_outcome(session, context, value)
    else:
        data, content_type = codec.encode(value)
        if len(data) > RESULT_BYTES_MAX:
            raise CodecError(f"a result is at most 1 MiB, not {len(data)} bytes")
        session.ack(context.job, data, content_type)


def settle_error(session: SharedSession, context: Context, error: BaseException) -> None:
    """Settles a job by the exception that its handler raised."""
    if isinstance(error, Outcome):
        settle_outcome(session, context, error)
    elif isinstance(error, asyncio.CancelledError) and context.cancelled:
        settle_stopped(session, context)
    else:
        attempt_failed(context.job, error)
        # What is sealed with a key that is gone will not be read by the next attempt either.
        then = FailAction.DEAD if isinstance(error, SealError) else FailAction.RETRY
        session.settle(fail_item(context.job, error, then=then))


def settle_outcome(session: SharedSession, context: Context, outcome: Outcome) -> None:
    """Settles a job by the outcome that its handler returned or raised."""
    job = context.job
    if isinstance(outcome, Retry):
        wrong = outcome.error or outcome.__cause__ or outcome
        if isinstance(wrong, BaseException):
            attempt_failed(job, wrong)
        else:
            attempt_given_up(job, JobError.of(wrong).message)
        session.settle(fail_item(job, wrong, retry_after=outcome.after))
    elif isinstance(outcome, Snooze):
        session.settle(release_item(job, delay=outcome.after, why=ReleaseReason.SNOOZE))
    elif isinstance(outcome, RateLimited):
        settle_limited(session, job, outcome)
    elif isinstance(outcome, (Cancel, Dead)):
        then = FailAction.CANCEL if isinstance(outcome, Cancel) else FailAction.DEAD
        session.settle(fail_item(job, _why(outcome), then=then))
    elif isinstance(outcome, Stopped) and context.cancelled:
        settle_stopped(session, context)
    else:
        session.settle(fail_item(job, outcome))


def settle_limited(session: SharedSession, job: LeasedJob, outcome: RateLimited) -> None:
    """Releases a job whose limiter is empty. The server would refuse one that it does not pass, and
    with it the whole frame, so the job fails here.
    """
    limiter = outcome.limiter
    if limiter and limiter not in job.options_message.limiters:
        passes = ", ".join(map(repr, job.options_message.limiters)) or "none"
        error = InvalidArgument(f"the job does not pass the limiter {limiter!r}, but {passes}")
        attempt_failed(job, error)
        session.settle(fail_item(job, error))
        return
    limited = ReleaseReason.LIMITED
    session.settle(release_item(job, delay=None, why=limited, until=outcome.until, limiter=limiter))


def _why(outcome: Cancel | Dead) -> JobError:
    """Returns the reason of an outcome, with the exception that it was raised from."""
    if outcome.__cause__ is None:
        return JobError(type(outcome).__name__, outcome.reason)
    cause = JobError.of(outcome.__cause__)
    message = ": ".join(filter(None, [outcome.reason, cause.message]))
    return replace(cause, message=message)


def settle_stopped(session: SharedSession, context: Context) -> None:
    """Settles a job whose handler ended because it was asked to."""
    if context.cancel_reason is CancelReason.CANCELLED:
        session.settle(cancelled_fail(context.job))
    elif context.cancel_reason is CancelReason.STOPPING and is_once(context.job):
        # It has begun: whether it may run again is a matter of its attempts.
        session.settle(fail_item(context.job, STOPPED))
    elif context.cancel_reason is CancelReason.STOPPING:
        session.settle(release_item(context.job, delay=None, why=ReleaseReason.INTERRUPTED))
    # Otherwise another worker has the lease: there is nothing to settle.


def is_once(job: LeasedJob) -> bool:
    """Returns whether a job may run only once."""
    return job.options_message.delivery == job_pb2.DELIVERY_MODE_ONCE


def cancelled_fail(job: LeasedJob | tuple[int, int]) -> pb.FailItem:
    """Returns the settle that confirms the cancellation of a job."""
    return fail_item(job, None, then=FailAction.CANCEL)


def release_unhandled(session: SharedSession, job: LeasedJob) -> None:
    """Releases a job whose name has no handler here."""
    logger.warning("no handler for job %d of %s/%s: given back", job.id, job.queue, job.name)
    session.settle(release_item(job, delay=UNHANDLED_DELAY, why=ReleaseReason.UNHANDLED))
