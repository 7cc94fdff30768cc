"""Whole jobs as messages, as the ended store keeps them and a retry restores them."""

from __future__ import annotations

from collections.abc import Sequence

from jobline.v1 import store_pb2
from jobline_server.engine.job import NO_DETAILS, Job
from jobline_server.engine.records import JobRecord
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.values import Attempt, EndReason, JobError, LeaseReason
from jobline_server.storage.codec.reports import fill_log, fill_phases, log_of, phases_of
from jobline_server.storage.codec.shared import interned_options
from jobline_server.storage.codec.unique import claim_of, fill_claim
from jobline_server.wire.errors import (
    attempt_from_stored,
    error_from_message,
    fill_error,
    fill_stored_attempt,
)
from jobline_server.wire.options import serialized_options

# Fields that record and message both have, and most records as they are when nothing is set.
_MOSTLY_UNSET = (
    "job_key",
    "attempts",
    "stalls",
    "releases",
    "delivery",
    "worker",
    "lease_reason",
    "progress",
    "progress_message",
    "reason",
    "result",
    "auto_retries",
    "retry_ms",
)


def fill_record(message: store_pb2.StoredJob, record: JobRecord) -> None:
    """Writes a record into a message. Fields that most jobs do not have are not touched: a retry of
    many writes them all at once.
    """
    message.id = record.id
    message.queue = record.queue
    message.options = serialized_options(record.options)
    message.payload = record.payload
    message.pushed_ms = record.pushed_ms
    message.ended_ms = record.ended_ms
    for name in _MOSTLY_UNSET:
        value = getattr(record, name)
        if value:
            setattr(message, name, value)
    if record.worker_checkpoint:
        message.checkpoint = record.worker_checkpoint
    if record.ties is not NO_TIES:
        fill_ties(message, record.ties)
    fill_log(message, record.log)
    fill_phases(message, record.phases)
    for attempt in record.history:
        fill_stored_attempt(message.history.add(), attempt)
    fill_last_error(message, record.error, record.history)


def fill_ties(message: store_pb2.StoredJob, ties: Ties) -> None:
    """Writes the ties of a job."""
    message.group = ties.group
    message.unique_key = ties.unique_key
    message.parents.extend(ties.parents)
    fill_claim(message, ties.claim)
    if ties.is_flow_root:
        message.is_flow_root = True
    if ties.on_failure:
        message.on_failure = ties.on_failure


def ties_of(message: store_pb2.StoredJob) -> Ties:
    """Returns the ties in a message; `NO_TIES` itself if there are none."""
    group, unique_key, parents = message.group, message.unique_key, message.parents
    is_root, on_failure = message.is_flow_root, message.on_failure
    if group or unique_key or parents or is_root:
        claim = claim_of(message)
        return Ties(group, unique_key, tuple(parents), claim, is_root, on_failure)
    return NO_TIES


def fill_hand_outs(message: store_pb2.StoredJob, job: Job) -> None:
    """Writes the fields of a job that was handed out at least once, or put back by itself."""
    message.delivery = job.delivery
    message.attempts = job.attempts
    message.stalls = job.stalls
    message.releases = job.releases
    details = job.details
    if details is not NO_DETAILS:
        message.progress = details.progress
        message.progress_message = details.progress_message
        message.checkpoint = details.worker_checkpoint
        fill_log(message, details.log)
        message.auto_retries = details.auto_retries
        fill_phases(message, details.phases)
        for attempt in details.history:
            fill_stored_attempt(message.history.add(), attempt)


def fill_last_error(
    message: store_pb2.StoredJob, error: JobError | None, history: Sequence[Attempt]
) -> None:
    """Writes the error that a job ended with. Mostly it is that of the last attempt, which stands
    in the history: errors are most of what a dead job takes, so no error is written twice.
    """
    if error is None:
        return
    if history and history[-1].error == error:
        message.error_of_last_attempt = True
    else:
        fill_error(message.error, error)


def record_from_stored(message: store_pb2.StoredJob) -> JobRecord:
    """The record in a message."""
    history = tuple(map(attempt_from_stored, message.history))
    return JobRecord(
        id=message.id,
        queue=message.queue,
        options=interned_options(message.options),
        payload=message.payload,
        pushed_ms=message.pushed_ms,
        job_key=message.job_key,
        attempts=message.attempts,
        stalls=message.stalls,
        releases=message.releases,
        delivery=message.delivery,
        history=history,
        worker_checkpoint=message.checkpoint,
        progress=message.progress,
        progress_message=message.progress_message,
        worker=message.worker,
        ended_ms=message.ended_ms,
        reason=EndReason(message.reason),
        result=message.result,
        error=_last_error(message, history),
        lease_reason=LeaseReason(message.lease_reason),
        ties=ties_of(message),
        log=log_of(message),
        auto_retries=message.auto_retries,
        retry_ms=message.retry_ms,
        phases=phases_of(message),
    )


def _last_error(message: store_pb2.StoredJob, history: Sequence[Attempt]) -> JobError | None:
    if message.error_of_last_attempt:
        return history[-1].error
    return error_from_message(message.error) if message.HasField("error") else None
