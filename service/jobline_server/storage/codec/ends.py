"""Facts of jobs that end and of ended jobs that go, between value and message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from jobline.v1 import entry_pb2, job_pb2
from jobline_server.engine import limits
from jobline_server.engine.entries import (
    Fact,
    JobDied,
    JobsAgedOut,
    JobsCancelled,
    JobsCompleted,
    JobsDeleted,
    JobsExpired,
)
from jobline_server.engine.values import EndReason, JobState
from jobline_server.storage.codec.table import FactRow, FactTable, whole
from jobline_server.wire.errors import error_from_message, fill_error


def fill_jobs_completed(entry: entry_pb2.Entry, fact: JobsCompleted) -> None:
    """Writes it into an entry."""
    message = entry.jobs_completed
    message.starts.extend(fact.starts)
    message.counts.extend(fact.counts)
    if fact.result_ids:
        message.result_ids.extend(fact.result_ids)
        message.results.extend(fact.results)


def jobs_completed(at_ms: int, message: entry_pb2.JobsCompleted) -> JobsCompleted:
    """Reads it."""
    return JobsCompleted(
        at_ms=at_ms,
        starts=list(message.starts),
        counts=list(message.counts),
        result_ids=list(message.result_ids),
        results=list(message.results),
    )


def fill_job_died(entry: entry_pb2.Entry, fact: JobDied) -> None:
    """Writes it into an entry."""
    message = entry.job_died
    message.id = fact.id
    message.reason = job_pb2.EndReason.ValueType(fact.reason)
    if fact.error is not None:
        fill_error(message.error, fact.error)
    message.timed_out = fact.timed_out


def job_died(at_ms: int, message: entry_pb2.JobDied) -> JobDied:
    """Reads it."""
    return JobDied(
        at_ms=at_ms,
        id=message.id,
        reason=EndReason(message.reason),
        error=error_from_message(message.error) if message.HasField("error") else None,
        timed_out=message.timed_out,
    )


def fill_jobs_expired(entry: entry_pb2.Entry, fact: JobsExpired) -> None:
    """Writes it into an entry."""
    message = entry.jobs_expired
    message.starts.extend(fact.starts)
    message.counts.extend(fact.counts)
    message.to_dead = fact.to_dead


def jobs_expired(at_ms: int, message: entry_pb2.JobsExpired) -> JobsExpired:
    """Reads it."""
    return JobsExpired(at_ms, list(message.starts), list(message.counts), message.to_dead)


def fill_jobs_cancelled(entry: entry_pb2.Entry, fact: JobsCancelled) -> None:
    """Writes it into an entry."""
    message = entry.jobs_cancelled
    message.starts.extend(fact.starts)
    message.counts.extend(fact.counts)
    message.result_ids.extend(fact.result_ids)
    message.results.extend(fact.results)
    if fact.error is not None:
        fill_error(message.error, fact.error)


def jobs_cancelled(at_ms: int, message: entry_pb2.JobsCancelled) -> JobsCancelled:
    """Reads it."""
    return JobsCancelled(
        at_ms=at_ms,
        starts=list(message.starts),
        counts=list(message.counts),
        result_ids=list(message.result_ids),
        results=list(message.results),
        error=error_from_message(message.error) if message.HasField("error") else None,
    )


def fill_jobs_aged_out(entry: entry_pb2.Entry, fact: JobsAgedOut) -> None:
    """Writes it into an entry."""
    message = entry.jobs_staled
    message.queue = fact.queue
    message.state = job_pb2.JobState.ValueType(fact.state)
    message.starts.extend(fact.starts)
    message.counts.extend(fact.counts)
    if fact.delete_after_ms != limits.DELETE_AFTER_MS_DEFAULT:
        message.delete_after_ms = fact.delete_after_ms


def jobs_aged_out(at_ms: int, message: entry_pb2.JobsStaled) -> JobsAgedOut:
    """Reads it; versions before wrote no time, as it was the default."""
    has_own = message.HasField("delete_after_ms")
    return JobsAgedOut(
        at_ms=at_ms,
        queue=message.queue,
        state=JobState(message.state),
        starts=list(message.starts),
        counts=list(message.counts),
        delete_after_ms=message.delete_after_ms if has_own else limits.DELETE_AFTER_MS_DEFAULT,
    )


def fill_jobs_deleted(entry: entry_pb2.Entry, fact: JobsDeleted) -> None:
    """Writes it into an entry."""
    message = entry.jobs_deleted
    message.queue = fact.queue
    message.state = job_pb2.JobState.ValueType(fact.state)
    message.starts.extend(fact.starts)
    message.counts.extend(fact.counts)
    message.evicted = fact.evicted


def jobs_deleted(at_ms: int, message: entry_pb2.JobsDeleted) -> JobsDeleted:
    """Reads it."""
    return JobsDeleted(
        at_ms=at_ms,
        queue=message.queue,
        state=JobState(message.state),
        starts=list(message.starts),
        counts=list(message.counts),
        evicted=message.evicted,
    )


def _settled(fact: JobsCompleted | JobsCancelled) -> Iterator[Fact]:
    results = dict(zip(fact.result_ids, fact.results, strict=True))
    for start, count in zip(fact.starts, fact.counts, strict=True):
        own = {start: results[start]} if start in results else {}
        yield replace(
            fact,
            starts=[start],
            counts=[count],
            result_ids=list(own),
            results=list(own.values()),
        )


def _in_runs(fact: JobsDeleted | JobsExpired) -> Iterator[Fact]:
    for start, count in zip(fact.starts, fact.counts, strict=True):
        yield replace(fact, starts=[start], counts=[count])


FACTS: FactTable = {
    JobsCompleted: FactRow("jobs_completed", fill_jobs_completed, jobs_completed, _settled),
    JobDied: FactRow("job_died", fill_job_died, job_died, whole),
    JobsCancelled: FactRow("jobs_cancelled", fill_jobs_cancelled, jobs_cancelled, _settled),
    JobsAgedOut: FactRow("jobs_staled", fill_jobs_aged_out, jobs_aged_out, whole),
    JobsDeleted: FactRow("jobs_deleted", fill_jobs_deleted, jobs_deleted, _in_runs),
    JobsExpired: FactRow("jobs_expired", fill_jobs_expired, jobs_expired, _in_runs),
}
