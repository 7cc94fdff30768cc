"""Rows of a push one by one, as tests like to write and to compare them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from jobline_server.engine.commands import Push
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.producers import Call
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.values import JobOptions


class NewJob(NamedTuple):
    """One row, or one of the plain payloads: those have a size of what stands beside them.
    `run_at_ms` 0 means at once.
    """

    payload: bytes
    options: JobOptions
    job_key: str = ""
    run_at_ms: int = 0
    beside_bytes: int | None = None
    ties: Ties = NO_TIES
    parent_indexes: tuple[int, ...] = ()


def rows_of(jobs: Iterable[NewJob]) -> JobColumns:
    """The columns of these rows; those that say nothing are empty."""
    listed = list(jobs)
    keys = [job.job_key for job in listed]
    moments = [job.run_at_ms for job in listed]
    indexes = [job.parent_indexes for job in listed]
    return JobColumns(
        [job.payload for job in listed],
        [job.options for job in listed],
        keys if any(keys) else [],
        moments if any(moments) else [],
        [job.ties for job in listed] if any(job.ties is not NO_TIES for job in listed) else [],
        indexes if any(indexes) else [],
    )


def jobs_of(rows: JobColumns) -> list[NewJob]:
    """The rows in these columns."""
    keys = rows.job_keys or [""] * len(rows)
    moments = rows.run_at_ms or [0] * len(rows)
    ties = rows.ties or [NO_TIES] * len(rows)
    indexes = rows.parent_indexes or [()] * len(rows)
    beside = [None] * len(rows)
    return list(map(NewJob, rows.payloads, rows.options, keys, moments, beside, ties, indexes))


def with_call(push: Push, number: int) -> Push:
    """The push as a call of one of three producers where its request id says so; two numbers are
    one call.
    """
    sequence = number // 2 + 1
    call = Call(b"%16d" % (sequence % 3), sequence, max(sequence - 6, 0), 7)
    return replace(push, request_id=b"", calls=(call,)) if push.request_id == b"call" else push
