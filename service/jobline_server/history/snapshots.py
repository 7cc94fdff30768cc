"""Rows of jobs and runs that a fact noted: what all their events have, and what hand-outs add.

A column that differs from job to job is a `list`; nothing else here is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jobline_server.engine.payloads import Payloads
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.snapshots import JobsNoted, RunsNoted
from jobline_server.engine.ties import NO_TIES
from jobline_server.engine.values import JobOptions, JobState
from jobline_server.history.rows import Rows, Sizes

# Enum attribute access is slow before Python 3.12.
_ACTIVE, _READY = JobState.ACTIVE, JobState.READY


def mapped(function: Callable[[Any], Any], column: Any) -> Any:
    """Returns the column of what a function makes of each value."""
    return [function(value) for value in column] if type(column) is list else function(column)


def or_else(column: Any, other: Any) -> Any:
    """Returns the values of a column, and where these are 0 those of another one."""
    if type(column) is not list:
        return column or other
    if type(other) is not list:
        return [value or other for value in column]
    return [value or instead for value, instead in zip(column, other, strict=True)]


def of_options(options: Any) -> dict[str, Any]:
    """Returns the columns that all events of jobs take of their options: one, or a list."""
    if type(options) is not list:
        return _of_one(options)
    columns: dict[str, Any] = {"priority": [each.priority for each in options]}
    if any(each.name for each in options):
        columns["name"] = [each.name or None for each in options]
    if any(each.rules is not NO_RULES for each in options):
        columns["batch_id"] = [each.rules.batch_id or None for each in options]
    return columns


def _of_one(options: JobOptions) -> dict[str, Any]:
    return columns_of(options.priority, options.name, options.rules.batch_id)


def columns_of(priority: int, name: str, batch_id: int) -> dict[str, Any]:
    """Returns the columns that all events of jobs take of the options that they share."""
    columns: dict[str, Any] = {"priority": priority}
    if name:
        columns["name"] = name
    if batch_id:
        columns["batch_id"] = batch_id
    return columns


def of_jobs(noted: JobsNoted, at_ms: int, event: str, **more: Any) -> Rows:
    """Returns rows with what all events of jobs have; `more` are the columns of the event."""
    columns = of_options(noted.options)
    columns["event"], columns["queue"] = event, noted.queue
    columns["payload_bytes"] = noted.payload_bytes
    if noted.ties is not NO_TIES:
        columns["group"] = mapped(lambda ties: ties.group or None, noted.ties)
    columns.update(more)
    return Rows(at_ms, columns, noted.ids)


def of_hand_outs(noted: JobsNoted, at_ms: int, event: str, **more: Any) -> Rows:
    """Returns rows of jobs with their lives so far and, if they are leased, their hand-outs; `more`
    are the columns of the event, and count before these.
    """
    rows = of_jobs(noted, at_ms, event)
    columns = rows.columns
    columns["pushed_at"] = noted.pushed_ms
    columns["first_leased_at"] = or_else(noted.first_leased_ms, None)
    columns["attempts"] = noted.attempts
    columns["stalls"] = noted.stalls
    columns["releases"] = noted.releases
    if noted.state is _ACTIVE:
        columns["delivery"] = noted.delivery
        columns["attempt"] = plus(noted.attempts, 1)
        columns["leased_at"] = noted.leased_ms
        columns["worker"] = mapped(lambda one: one.worker or None if one else None, noted.holder)
        columns["worker_version"] = mapped(
            lambda one: one.version or None if one else None, noted.holder
        )
    if noted.state is _ACTIVE or noted.state is _READY:
        columns["ready_at"] = or_else(noted.ready_ms, noted.pushed_ms)
    columns.update(more)
    return rows


def plus(column: Any, number: int) -> Any:
    """Returns a column of numbers that are that much greater."""
    return [value + number for value in column] if type(column) is list else column + number


def of_runs(noted: RunsNoted, at_ms: int, event: str, **more: Any) -> Rows:
    """Returns rows with what all events of jobs have, of members of a lot."""
    lot = noted.lot
    columns = _of_one(lot.options)
    columns["event"], columns["queue"] = event, lot.queue.name
    columns["payload_bytes"] = sizes_of(lot.payloads, lot.first_id, noted.starts, noted.counts)
    columns.update(more)
    return Rows(at_ms, columns, noted.starts, noted.counts)


def run_hand_outs(noted: RunsNoted, at_ms: int, event: str, **more: Any) -> Rows:
    """Returns rows of members of a lot, as `of_hand_outs` of jobs."""
    lease, pushed_ms = noted.lease, noted.lot.pushed_ms
    columns: dict[str, Any] = {"pushed_at": pushed_ms, "attempts": 0, "stalls": 0, "releases": 0}
    if lease is not None or noted.state is _READY:
        columns["ready_at"] = noted.ready_ms or pushed_ms
    if lease is not None:
        columns["delivery"], columns["attempt"] = lease.delivery, 1
        columns["worker"] = lease.holder.worker or None
        columns["worker_version"] = lease.holder.version or None
        columns["leased_at"] = columns["first_leased_at"] = lease.leased_ms
    return of_runs(noted, at_ms, event, **columns, **more)


def sizes_of(
    payloads: Payloads, first_id: int, starts: Sequence[int], counts: Sequence[int]
) -> int | Sizes:
    """Returns the payload bytes of members of a lot: one size for all, or one for each."""
    if payloads.sums is None:
        return payloads.bytes_max
    return Sizes(payloads.sums, first_id + payloads.skipped, starts, counts)
