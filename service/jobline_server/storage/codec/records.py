"""Jobs written down whole, as the finished file keeps them and a retry brings them back."""

from __future__ import annotations

from jobline.v1 import job_pb2, store_pb2
from jobline_server.engine.entries import JobRecord
from jobline_server.engine.values import EndReason, LeaseReason
from jobline_server.storage.codec.shared import interned_options
from jobline_server.wire.errors import (
    attempt_from_stored,
    error_from_message,
    fill_error,
    fill_stored_attempt,
)
from jobline_server.wire.options import serialized_options


def fill_record(message: store_pb2.StoredJob, record: JobRecord) -> None:
    """Writes a record into a message."""
    message.id = record.id
    message.queue = record.queue
    message.options = serialized_options(record.options)
    message.payload = record.payload
    message.pushed_ms = record.pushed_ms
    message.job_key = record.job_key
    message.attempts = record.attempts
    message.stalls = record.stalls
    message.releases = record.releases
    message.delivery = record.delivery
    message.worker = record.worker
    message.lease_reason = job_pb2.LeaseReason.ValueType(record.lease_reason)
    message.progress = record.progress
    message.progress_message = record.progress_message
    message.checkpoint = record.checkpoint
    for attempt in record.history:
        fill_stored_attempt(message.history.add(), attempt)
    message.ended_ms = record.ended_ms
    message.reason = job_pb2.EndReason.ValueType(record.reason)
    message.result = record.result
    if record.error is not None:
        fill_error(message.error, record.error)


def record_from_stored(message: store_pb2.StoredJob) -> JobRecord:
    """The record in a message."""
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
        history=tuple(map(attempt_from_stored, message.history)),
        checkpoint=message.checkpoint,
        progress=message.progress,
        progress_message=message.progress_message,
        worker=message.worker,
        ended_ms=message.ended_ms,
        reason=EndReason(message.reason),
        result=message.result,
        error=error_from_message(message.error) if message.HasField("error") else None,
        lease_reason=LeaseReason(message.lease_reason),
    )
