"""How many bytes facts take in the journal at most, about: not less than they do, as a row that
SQLite refuses stops the server; and counted cheaply, as each fact is looked at.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import fields
from enum import Enum
from functools import cache
from typing import Any

from jobline_server.engine import entries
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.values import DEFAULT_OPTIONS, JobError, JobOptions

# What one row of the journal takes; the decision that reaches it is the last, and has some tens of
# MiB. SQLite stores no more than 1,000,000,000 bytes.
ENTRY_BYTES_MAX = 256 << 20

# Numbers, and what stands before a text; a character has four bytes at most.
_NUMBER_BYTES = _HEAD_BYTES = 11
_CHARACTER_BYTES = 4
# Options: headers, names and the like; and all rules, of which the names of phases are the largest.
_OPTIONS_BYTES, _RULES_BYTES = 16 << 10, 160 << 10
# A call with its request id; a job with ties: its group, its key and its claim.
_CALL_BYTES, _TIES_BYTES = 400, 4 << 10
_JOB_BYTES = 64


def size_of(value: Any) -> int:
    """Returns the most bytes that a fact takes, or a value of one. What is no value is not
    written.
    """
    kind: Any = type(value)
    if kind is str:
        return _CHARACTER_BYTES * len(value) + _HEAD_BYTES
    if kind is bytes:
        return len(value) + _HEAD_BYTES
    if value is None or kind in (int, float, bool) or isinstance(value, Enum):
        return _NUMBER_BYTES
    if isinstance(value, Payloads):
        return _payloads(value)
    if isinstance(value, (list, tuple, deque, set, frozenset)):
        if set(map(type, value)) == {int}:
            return _NUMBER_BYTES * len(value) + _HEAD_BYTES
        return sum(map(size_of, value)) + _HEAD_BYTES
    return sum([size_of(getattr(value, name)) for name in _names(kind)]) + _HEAD_BYTES


@cache
def _names(kind: Any) -> tuple[str, ...]:
    if not hasattr(kind, "__dataclass_fields__"):
        return ()
    return tuple(field.name for field in fields(kind))


def _payloads(payloads: Payloads) -> int:
    columns = payloads.columns
    each = _NUMBER_BYTES if columns is None else columns.bytes_max + _NUMBER_BYTES
    return len(payloads.block) + each * len(payloads)


def _options(options: JobOptions) -> int:
    if options is DEFAULT_OPTIONS:
        return 0
    return _OPTIONS_BYTES if options.rules is NO_RULES else _RULES_BYTES


def _lot(fact: entries.LotPushed) -> int:
    payloads = fact.payloads
    size = len(payloads.block) + len(fact.stored_rows) + _JOB_BYTES * len(payloads)
    if payloads.columns is not None:
        size += payloads.columns.bytes_max * len(payloads)
    if fact.options is not DEFAULT_OPTIONS:
        size += _options(fact.options)
    return size + _CALL_BYTES * len(fact.calls)


def _jobs(fact: entries.JobsPushed) -> int:
    size = sum(map(len, fact.payloads)) + _JOB_BYTES * len(fact.payloads) + len(fact.stored_rows)
    each = {id(options): options for options in fact.options}
    size += sum(map(_options, each.values())) + _CALL_BYTES * len(fact.calls)
    if fact.job_keys:
        size += _CHARACTER_BYTES * sum(map(len, fact.job_keys))
    if fact.ties:
        parents = sum([len(ties.parents) for ties in fact.ties])
        parents += sum(map(len, fact.parents_left))
        size += _TIES_BYTES * len(fact.ties) + 2 * _NUMBER_BYTES * parents
    return size


def _completed(fact: entries.JobsCompleted) -> int:
    ids = 3 * _NUMBER_BYTES * len(fact.starts)
    return ids + sum(map(len, fact.results)) if fact.results else ids


def _error(error: JobError | None) -> int:
    if error is None:
        return 0
    texts = len(error.type) + len(error.message) + len(error.stack)
    return _CHARACTER_BYTES * texts + len(error.details)


BYTES_OF: dict[type, Callable[[Any], int] | None] = {
    entries.LotPushed: _lot,
    entries.JobsPushed: _jobs,
    entries.JobsCompleted: _completed,
    entries.JobFailed: lambda fact: _error(fact.error) + _TIES_BYTES,
    entries.JobDied: lambda fact: _error(fact.error) + _TIES_BYTES,
    # Some bytes for each job, of which no server hands out millions between two commits.
    entries.JobsLeased: None,
    entries.JobsReady: None,
}
"""For the facts of which there are many; of all others it is `size_of`."""
