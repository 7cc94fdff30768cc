"""Rows of jobs that were pushed, or put back after their end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobline_server.engine.entries import JobsPushed, JobsRetried, LotPushed
from jobline_server.engine.ties import NO_TIES
from jobline_server.engine.values import JobOptions
from jobline_server.history.rows import Rows
from jobline_server.history.snapshots import sizes_of

# https://www.w3.org/TR/trace-context/#traceparent-header: version, trace id, parent id, flags
_TRACE_PARENT = "traceparent"


def lot_pushed(fact: LotPushed, _noted: object) -> Iterator[Rows]:
    """Yields the rows of a lot: one for all its jobs, unless each has headers of its own."""
    payloads, first_id, options = fact.payloads, fact.first_id, fact.options
    count = len(payloads)
    size, sizes = sizes_of(payloads, first_id, (first_id,), (count,))
    rows = Rows(
        fact.at_ms,
        "pushed",
        fact.queue,
        (first_id,),
        (count,),
        count,
        **_of_options(options),
        pushed_at=fact.at_ms,
        ready_at=None if fact.run_at_ms else fact.at_ms,
        run_at=fact.run_at_ms or None,
        payload_bytes=size,
        sizes=sizes,
    )
    columns = payloads.columns
    if columns is None or not columns.headers:
        yield rows
        return
    for index in range(count):
        headers = dict(payloads.options_of(index, options).headers)
        yield rows._replace(
            starts=(first_id + index,),
            counts=(1,),
            total=1,
            payload_bytes=payloads.size_of(index),
            sizes=None,
            headers=headers or None,
            trace_id=trace_id_of(headers),
        )


def jobs_pushed(fact: JobsPushed, _noted: object) -> Iterator[Rows]:
    """Yields a row for each job."""
    options, ties, times = fact.options, fact.ties, fact.run_at_ms
    blocked = set(fact.blocked)
    for index, payload in enumerate(fact.payloads):
        run_at_ms = times[index] if times else 0
        tie = ties[index] if ties else NO_TIES
        waits = run_at_ms or index in blocked
        yield Rows(
            fact.at_ms,
            "pushed",
            fact.queue,
            (fact.first_id + index,),
            (1,),
            **_of_options(options[index] if len(options) > 1 else options[0]),
            group=tie.group or None,
            pushed_at=fact.at_ms,
            ready_at=None if waits else fact.at_ms,
            run_at=run_at_ms or None,
            depends_on=tie.parents or None,
            payload_bytes=len(payload),
        )


def jobs_retried(fact: JobsRetried, _noted: object) -> Iterator[Rows]:
    """Yields a row for each job that was put back; its attempts begin again."""
    event = "dead_retried" if fact.automatic else "retried"
    for record in fact.jobs:
        options = record.options
        yield Rows(
            fact.at_ms,
            event,
            record.queue,
            (record.id,),
            (1,),
            name=options.name or None,
            group=record.ties.group or None,
            priority=options.priority,
            pushed_at=record.pushed_ms,
            ready_at=fact.at_ms,
            batch_id=options.rules.batch_id or None,
            payload_bytes=len(record.payload),
        )


def _of_options(options: JobOptions) -> dict[str, Any]:
    rules = options.rules
    columns: dict[str, Any] = {"name": options.name or None, "priority": options.priority}
    if rules.batch_id:
        columns["batch_id"] = rules.batch_id
    if rules.tags:
        columns["tags"] = rules.tags
    if options.headers:
        headers = columns["headers"] = dict(options.headers)
        columns["trace_id"] = trace_id_of(headers)
    return columns


def trace_id_of(headers: Mapping[str, str]) -> str | None:
    """Returns the trace id of a job's headers; None if it has none."""
    parts = headers.get(_TRACE_PARENT, "").split("-")
    return parts[1] if len(parts) >= 4 and len(parts[1]) == 32 else None
