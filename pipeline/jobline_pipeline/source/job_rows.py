"""Jobs as rows: pages of jobs to Arrow, column by column.

A page has messages of single jobs, and runs of jobs that are alike. Of a run, what the jobs share
is one row that Arrow spreads, and what each has of its own is a column already. Columns that a
frame does not name are not read; what is empty in the protocol is null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np
import pyarrow as pa

from jobline_pipeline.source.conversions import REASONS, STATES, micros

_JOB_COLUMNS: Mapping[str, Callable[[Sequence[Any]], list[Any]]] = {
    "job_id": lambda jobs: [job.id for job in jobs],
    "queue": lambda jobs: [job.queue for job in jobs],
    "name": lambda jobs: [job.options.name for job in jobs],
    "state": lambda jobs: [STATES.get(job.state) for job in jobs],
    "payload": lambda jobs: [job.payload for job in jobs],
    "payload_bytes": lambda jobs: [job.payload_bytes for job in jobs],
    "content_type": lambda jobs: [job.options.content_type or None for job in jobs],
    "job_key": lambda jobs: [job.job_key or None for job in jobs],
    "unique_key": lambda jobs: [job.options.unique_key or None for job in jobs],
    "group": lambda jobs: [job.options.group or None for job in jobs],
    "priority": lambda jobs: [job.options.priority for job in jobs],
    "tags": lambda jobs: [list(job.options.tags) for job in jobs],
    "headers": lambda jobs: [list(job.options.headers.items()) for job in jobs],
    "batch_id": lambda jobs: [job.options.batch_id or None for job in jobs],
    "depends_on": lambda jobs: [list(job.options.depends_on) for job in jobs],
    "attempts": lambda jobs: [job.attempts for job in jobs],
    "max_attempts": lambda jobs: [
        job.options.max_attempts if job.options.HasField("max_attempts") else None for job in jobs
    ],
    "stalls": lambda jobs: [job.stalls for job in jobs],
    "releases": lambda jobs: [job.releases for job in jobs],
    "delivery": lambda jobs: [job.delivery for job in jobs],
    "worker": lambda jobs: [job.worker or None for job in jobs],
    "progress": lambda jobs: [job.progress for job in jobs],
    "result": lambda jobs: [job.result or None for job in jobs],
    "error_type": lambda jobs: [job.error.type or None for job in jobs],
    "error": lambda jobs: [job.error.message or None for job in jobs],
    "reason": lambda jobs: [REASONS.get(job.reason) for job in jobs],
    "cancel_requested": lambda jobs: [job.cancel_requested for job in jobs],
}


def _job_column(name: str, jobs: Sequence[Any]) -> list[Any]:
    read = _JOB_COLUMNS.get(name)
    if read is not None:
        return read(jobs)
    return [micros(getattr(job, name)) if job.HasField(name) else None for job in jobs]


def page_batches(page: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yields the jobs of a page as rows of a schema that `arrow_schema` made: runs, then others."""
    if page.runs:
        yield _runs_batch(page.runs, schema)
    if page.jobs:
        yield _jobs_batch(page.jobs, schema)


def _jobs_batch(jobs: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array(_job_column(field.name, jobs), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _runs_batch(runs: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
    shared = [run.shared for run in runs]
    counts = np.array([run.count for run in runs], np.int64)
    rows = pa.array(np.repeat(np.arange(len(runs)), counts))
    columns = []
    for field in schema:
        if field.name == "job_id":
            column = pa.array(_ids(runs, counts), field.type)
        else:
            own = _OWN.get(field.name)
            values = None if own is None else own(runs)
            if values is not None:
                column = pa.array(values, field.type)
            else:
                column = pa.array(_job_column(field.name, shared), field.type).take(rows)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _ids(runs: Sequence[Any], counts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    first_ids = np.array([run.first_id for run in runs], np.int64)
    rows_before = np.cumsum(counts) - counts
    return np.repeat(first_ids - rows_before, counts) + np.arange(counts.sum())


def _joined(runs: Sequence[Any], values_of: Callable[[Any], Iterable[Any]]) -> list[Any]:
    return list(chain.from_iterable(map(values_of, runs)))


def _own_payloads(runs: Sequence[Any]) -> list[Any]:
    return _joined(runs, lambda run: run.payloads)


def _own_sizes(runs: Sequence[Any]) -> list[Any]:
    def sizes(run: Any) -> Iterable[int]:
        if run.payload_bytes:
            return run.payload_bytes  # type: ignore[no-any-return]  # a field
        return map(len, run.payloads) if run.payloads else repeat(_shared_bytes(run), run.count)

    return _joined(runs, sizes)


def _shared_bytes(run: Any) -> int:
    return int(run.shared.payload_bytes)


def _own_keys(runs: Sequence[Any]) -> list[Any] | None:
    if not any(run.job_keys for run in runs):
        return None
    return [key or None for key in _joined(runs, lambda run: run.job_keys or repeat("", run.count))]


def _own_ends(runs: Sequence[Any]) -> list[Any] | None:
    if not any(run.ended_ms for run in runs):
        return None

    def ends(run: Any) -> Iterable[int | None]:
        if run.ended_ms:
            return [at_ms * 1_000 for at_ms in run.ended_ms]
        shared = run.shared
        at = micros(shared.ended_at) if shared.HasField("ended_at") else None
        return repeat(at, run.count)

    return _joined(runs, ends)


def _own_headers(runs: Sequence[Any]) -> list[Any] | None:
    if not any(run.header_columns for run in runs):
        return None
    return _joined(runs, _headers_of)


def _headers_of(run: Any) -> Iterator[list[tuple[str, str]]]:
    """Yields the headers of each job: its own go before those that it shares."""
    shared = dict(run.shared.options.headers)
    keys = [column.key for column in run.header_columns]
    columns = [column.values for column in run.header_columns]
    for values in zip(*columns, strict=True) if columns else repeat((), run.count):
        own = {key: value for key, value in zip(keys, values, strict=True) if value}
        yield list({**shared, **own}.items())


# What jobs of a run may have of their own, as a value a job; None where all share it.
_OWN: Mapping[str, Callable[[Sequence[Any]], list[Any] | None]] = {
    "payload": _own_payloads,
    "payload_bytes": _own_sizes,
    "job_key": _own_keys,
    "ended_at": _own_ends,
    "headers": _own_headers,
}
