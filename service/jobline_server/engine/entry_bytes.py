"""About how many bytes the facts take in the journal that may take many; all others are small."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobline_server.engine import entries, report_entries, update_entries
from jobline_server.engine.records import JobRecord
from jobline_server.engine.values import JobError


def _lot(fact: entries.LotPushed) -> int:
    payloads = fact.payloads
    columns = payloads.columns
    size = len(payloads.block)
    return size if columns is None else size + columns.bytes_max * len(payloads)


def _sum(values: list[bytes]) -> int:
    return sum(map(len, values))


def _error(error: JobError | None) -> int:
    if error is None:
        return 0
    return len(error.message) + len(error.stack) + len(error.details)


def _record(record: JobRecord) -> int:
    phases = sum([len(phase.result) for phase in record.phases])
    return len(record.payload) + len(record.result) + len(record.worker_checkpoint) + phases


BYTES_OF: dict[type, Callable[[Any], int]] = {
    entries.LotPushed: _lot,
    entries.JobsPushed: lambda fact: _sum(fact.payloads),
    entries.JobsCompleted: lambda fact: _sum(fact.results) if fact.results else 0,
    entries.JobsCancelled: lambda fact: _sum(fact.results) + _error(fact.error),
    entries.JobFailed: lambda fact: _error(fact.error),
    entries.JobDied: lambda fact: _error(fact.error),
    entries.JobsRetried: lambda fact: sum(map(_record, fact.jobs)),
    update_entries.JobUpdated: lambda fact: len(fact.payload or b""),
    report_entries.JobReported: lambda fact: len(fact.worker_checkpoint or b""),
    report_entries.JobLogged: lambda fact: sum([len(line.text) for line in fact.lines]),
    report_entries.PhaseCompleted: lambda fact: len(fact.result),
}
