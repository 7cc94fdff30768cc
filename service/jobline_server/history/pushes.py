"""Rows of jobs that were pushed, or put back after their end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from jobline_server.engine.columns import LotColumns
from jobline_server.engine.entries import JobsPushed, JobsRetried, LotPushed
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.values import JobOptions
from jobline_server.history.rows import Later, Rows
from jobline_server.history.snapshots import of_options, sizes_of

# https://www.w3.org/TR/trace-context/#traceparent-header: version, trace id, parent id, flags
_TRACE_PARENT = "traceparent"

# What a header of a job takes beside its text, and a trace id of one.
_HEADER_BYTES, _TRACE_BYTES = 100, 100

Headers = tuple[tuple[str, str], ...]


def lot_pushed(fact: LotPushed, _noted: object) -> Iterator[Rows]:
    """Yields the rows of a lot."""
    payloads, first_id, options = fact.payloads, fact.first_id, fact.options
    columns = _of_pushed(options)
    columns["queue"], columns["pushed_at"] = fact.queue, fact.at_ms
    if fact.run_at_ms:
        columns["run_at"] = fact.run_at_ms
    else:
        columns["ready_at"] = fact.at_ms
    starts, counts = (first_id,), (len(payloads),)
    columns["payload_bytes"] = sizes_of(payloads, first_id, starts, counts)
    if payloads.columns is not None and payloads.columns.headers:
        columns.update(_own_headers(payloads.columns, len(payloads), options.headers))
    yield Rows(fact.at_ms, columns, starts, counts)


def _own_headers(own: LotColumns, count: int, shared: Headers) -> Iterator[tuple[str, Later]]:
    """Yields the columns of headers that differ from job to job."""
    size = own.bytes_of(0, count) + _HEADER_BYTES * count * len(own.headers)
    yield "headers", Later(partial(_headers_each, own, shared), size)
    if _TRACE_PARENT in own.header_keys:
        yield "trace_id", Later(partial(_traces_in, own, shared), _TRACE_BYTES * count)


def _headers_each(own: LotColumns, shared: Headers) -> list[Headers | None]:
    """Returns the headers of each job, as `Payloads.options_of` does."""
    keys = own.header_keys
    found: list[Headers | None] = []
    for values in zip(*[column for _, column in own.headers], strict=True):
        each = {key: value.decode() for key, value in zip(keys, values, strict=True) if value}
        headers = tuple(sorted((dict(shared) | each).items())) if each else shared
        found.append(headers or None)
    return found


def _traces_in(own: LotColumns, shared: Headers) -> list[str | None]:
    """Returns the trace id of each job."""
    values = next(column for key, column in own.headers if key == _TRACE_PARENT)
    instead = trace_id_of(dict(shared))
    return [trace_id_in(value.decode()) if value else instead for value in values]


def jobs_pushed(fact: JobsPushed, _noted: object) -> Iterator[Rows]:
    """Yields the rows of jobs with options of their own."""
    count = len(fact.payloads)
    options = fact.options
    is_shared = len(options) == 1 or options.count(options[0]) == count
    columns = _of_pushed(options[0] if is_shared else options)
    columns["queue"], columns["pushed_at"] = fact.queue, fact.at_ms
    columns["payload_bytes"] = [len(payload) for payload in fact.payloads]
    if fact.run_at_ms:
        columns["run_at"] = [run_at_ms or None for run_at_ms in fact.run_at_ms]
    columns["ready_at"] = fact.at_ms
    if fact.run_at_ms or fact.blocked:
        blocked, times = set(fact.blocked), fact.run_at_ms or [0] * count
        columns["ready_at"] = [
            None if run_at_ms or index in blocked else fact.at_ms
            for index, run_at_ms in enumerate(times)
        ]
    if fact.ties:
        columns["group"] = [tie.group or None for tie in fact.ties]
        if any(tie.parents for tie in fact.ties):
            columns["depends_on"] = [tuple(tie.parents) or None for tie in fact.ties]
    yield Rows(fact.at_ms, columns, range(fact.first_id, fact.first_id + count))


def jobs_retried(fact: JobsRetried, _noted: object) -> Iterator[Rows]:
    """Yields a row for each job that was put back; its attempts begin again."""
    event = "dead_retried" if fact.automatic else "retried"
    for record in fact.jobs:
        columns = of_options(record.options)
        columns["event"], columns["queue"] = event, record.queue
        columns["group"] = record.ties.group or None
        columns["pushed_at"], columns["ready_at"] = record.pushed_ms, fact.at_ms
        columns["payload_bytes"] = len(record.payload)
        yield Rows(fact.at_ms, columns, (record.id,))


def _of_pushed(options: JobOptions | list[JobOptions]) -> dict[str, Any]:
    """Returns the columns of options that pushes have."""
    columns = of_options(options)
    columns["event"] = "pushed"
    if isinstance(options, list):
        if any(each.rules is not NO_RULES for each in options):
            columns["tags"] = [each.rules.tags or None for each in options]
        if any(each.headers for each in options):
            columns["headers"] = [each.headers or None for each in options]
            traces = partial(_traces_of, [each.headers for each in options])
            columns["trace_id"] = Later(traces, _TRACE_BYTES * len(options))
        return columns
    if options.rules.tags:
        columns["tags"] = options.rules.tags
    if options.headers:
        columns["headers"] = options.headers
        columns["trace_id"] = trace_id_of(dict(options.headers))
    return columns


def _traces_of(headers: Sequence[Headers]) -> list[str | None]:
    return [trace_id_of(dict(each)) for each in headers]


def trace_id_of(headers: Mapping[str, str]) -> str | None:
    """Returns the trace id of a job's headers; None if it has none."""
    return trace_id_in(headers.get(_TRACE_PARENT, ""))


def trace_id_in(trace_parent: str) -> str | None:
    """Returns the trace id of that header; None if there is none in it."""
    parts = trace_parent.split("-")
    return parts[1] if len(parts) >= 4 and len(parts[1]) == 32 else None
