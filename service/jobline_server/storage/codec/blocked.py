"""Facts of BLOCKED jobs, between value and message."""

from __future__ import annotations

from collections.abc import Iterator

from jobline.v1 import entry_pb2
from jobline_server.engine.blocked_entries import JobsUnblocked
from jobline_server.engine.entries import Fact
from jobline_server.storage.codec.table import FactRow, FactTable


def fill_jobs_unblocked(entry: entry_pb2.Entry, fact: JobsUnblocked) -> None:
    """Writes it into an entry."""
    message = entry.jobs_unblocked
    message.queue = fact.queue
    message.ids.extend(fact.ids)


def jobs_unblocked(at_ms: int, message: entry_pb2.JobsUnblocked) -> JobsUnblocked:
    """Reads it."""
    return JobsUnblocked(at_ms=at_ms, queue=message.queue, ids=list(message.ids))


def _one_by_one(fact: JobsUnblocked) -> Iterator[Fact]:
    for job_id in fact.ids:
        yield JobsUnblocked(fact.at_ms, fact.queue, [job_id])


FACTS: FactTable = {
    JobsUnblocked: FactRow("jobs_unblocked", fill_jobs_unblocked, jobs_unblocked, _one_by_one),
}
