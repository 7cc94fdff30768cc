"""Facts of jobs that are handed out and come back unfinished, between value and message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from jobline.v1 import entry_pb2, job_pb2
from jobline_server.engine.entries import (
    CancelRequested,
    Fact,
    JobFailed,
    JobsLeased,
    JobsReleased,
    JobsStalled,
)
from jobline_server.engine.report_entries import JobReported
from jobline_server.engine.values import EndReason, ReleaseReason
from jobline_server.storage.codec.table import FactRow, FactTable, whole
from jobline_server.wire.errors import error_from_message, fill_error


def fill_jobs_leased(entry: entry_pb2.Entry, fact: JobsLeased) -> None:
    """Writes it into an entry."""
    message = entry.jobs_leased
    message.queue = fact.queue
    message.worker = fact.worker
    message.session = fact.session
    message.lease_ms = fact.lease_ms
    message.starts.extend(fact.starts)
    message.counts.extend(fact.counts)
    message.deliveries.extend(fact.deliveries)
    message.worker_version = fact.version


def jobs_leased(at_ms: int, message: entry_pb2.JobsLeased) -> JobsLeased:
    """Reads it; who holds the leases is found by the session's name."""
    return JobsLeased(
        at_ms=at_ms,
        queue=message.queue,
        worker=message.worker,
        session=message.session,
        lease_ms=message.lease_ms,
        starts=list(message.starts),
        counts=list(message.counts),
        deliveries=list(message.deliveries),
        version=message.worker_version,
    )


def fill_job_failed(entry: entry_pb2.Entry, fact: JobFailed) -> None:
    """Writes it into an entry."""
    message = entry.job_failed
    message.id = fact.id
    message.run_at_ms = fact.run_at_ms
    fill_error(message.error, fact.error)
    message.queue = fact.queue
    message.name = fact.name
    message.delivery = fact.delivery
    message.attempt = fact.attempt
    message.worker = fact.worker
    message.timed_out = fact.timed_out


def job_failed(at_ms: int, message: entry_pb2.JobFailed) -> JobFailed:
    """Reads it."""
    return JobFailed(
        at_ms=at_ms,
        id=message.id,
        run_at_ms=message.run_at_ms,
        error=error_from_message(message.error),
        queue=message.queue,
        name=message.name,
        delivery=message.delivery,
        attempt=message.attempt,
        worker=message.worker,
        timed_out=message.timed_out,
    )


def fill_jobs_stalled(entry: entry_pb2.Entry, fact: JobsStalled) -> None:
    """Writes it into an entry."""
    message = entry.jobs_stalled
    message.queue = fact.queue
    message.ids.extend(fact.ids)
    message.run_at_ms.extend(fact.run_at_ms)
    message.reason = job_pb2.EndReason.ValueType(fact.reason)
    message.worker = fact.worker


def jobs_stalled(at_ms: int, message: entry_pb2.JobsStalled) -> JobsStalled:
    """Reads it."""
    return JobsStalled(
        at_ms=at_ms,
        queue=message.queue,
        ids=list(message.ids),
        run_at_ms=list(message.run_at_ms),
        reason=EndReason(message.reason),
        worker=message.worker,
    )


def fill_jobs_released(entry: entry_pb2.Entry, fact: JobsReleased) -> None:
    """Writes it into an entry."""
    message = entry.jobs_released
    message.queue = fact.queue
    message.ids.extend(fact.ids)
    message.run_at_ms.extend(fact.run_at_ms)
    message.why = fact.why
    message.worker = fact.worker


def jobs_released(at_ms: int, message: entry_pb2.JobsReleased) -> JobsReleased:
    """Reads it."""
    return JobsReleased(
        at_ms=at_ms,
        queue=message.queue,
        ids=list(message.ids),
        run_at_ms=list(message.run_at_ms),
        why=ReleaseReason(message.why),
        worker=message.worker,
    )


def fill_job_reported(entry: entry_pb2.Entry, fact: JobReported) -> None:
    """Writes it into an entry."""
    message = entry.job_reported
    message.queue = fact.queue
    message.id = fact.id
    if fact.progress is not None:
        message.progress = fact.progress
    if fact.message is not None:
        message.message = fact.message
    if fact.worker_checkpoint is not None:
        message.checkpoint = fact.worker_checkpoint


def job_reported(at_ms: int, message: entry_pb2.JobReported) -> JobReported:
    """Reads it."""
    has = message.HasField
    return JobReported(
        at_ms=at_ms,
        queue=message.queue,
        id=message.id,
        progress=message.progress if has("progress") else None,
        message=message.message if has("message") else None,
        worker_checkpoint=message.checkpoint if has("checkpoint") else None,
    )


def fill_cancel_requested(entry: entry_pb2.Entry, fact: CancelRequested) -> None:
    """Writes it into an entry."""
    message = entry.cancel_requested
    message.queue = fact.queue
    message.ids.extend(fact.ids)


def cancel_requested(at_ms: int, message: entry_pb2.CancelRequested) -> CancelRequested:
    """Reads it."""
    return CancelRequested(at_ms=at_ms, queue=message.queue, ids=list(message.ids))


def _leased(fact: JobsLeased) -> Iterator[Fact]:
    runs = zip(fact.starts, fact.counts, fact.deliveries, strict=True)
    for start, count, delivery in runs:
        yield replace(fact, starts=[start], counts=[count], deliveries=[delivery])


def _given_back(fact: JobsStalled | JobsReleased) -> Iterator[Fact]:
    for index, job_id in enumerate(fact.ids):
        run_at_ms = fact.run_at_ms[index : index + 1]
        yield replace(fact, ids=[job_id], run_at_ms=run_at_ms)


def _asked(fact: CancelRequested) -> Iterator[Fact]:
    for job_id in fact.ids:
        yield replace(fact, ids=[job_id])


FACTS: FactTable = {
    JobsLeased: FactRow("jobs_leased", fill_jobs_leased, jobs_leased, _leased),
    JobFailed: FactRow("job_failed", fill_job_failed, job_failed, whole),
    JobsStalled: FactRow("jobs_stalled", fill_jobs_stalled, jobs_stalled, _given_back),
    JobsReleased: FactRow("jobs_released", fill_jobs_released, jobs_released, _given_back),
    JobReported: FactRow("job_reported", fill_job_reported, job_reported, whole),
    CancelRequested: FactRow("cancel_requested", fill_cancel_requested, cancel_requested, _asked),
}
