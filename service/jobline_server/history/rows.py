"""Rows: one event of many jobs of a shard, as its values and the ids that it concerns.

A thousand jobs of a lot that are pushed, leased or completed together are one `Rows`. The names of
the fields are those of the columns (`schema`); times are in milliseconds, and None is NULL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

# A row's offset is the journal's offset times this, plus its index among the rows of that entry. No
# commit has as many: it takes what gathers while the one before it is written.
ROWS_PER_ENTRY = 1 << 24


class Rows(NamedTuple):
    """`starts=[7], counts=[3]` names jobs 7, 8, 9, which makes `total` 3. Without `starts` it is
    one row of no job. `sizes` are the payload bytes of each job where they differ.
    """

    at: int
    event: str
    queue: str | None = None
    starts: Sequence[int] = ()
    counts: Sequence[int] = ()
    total: int = 1
    name: str | None = None
    group: str | None = None
    priority: int | None = None
    delivery: int | None = None
    attempt: int | None = None
    worker: str | None = None
    worker_version: str | None = None
    pushed_at: int | None = None
    ready_at: int | None = None
    leased_at: int | None = None
    first_leased_at: int | None = None
    run_at: int | None = None
    lease_until: int | None = None
    next_run_at: int | None = None
    attempts: int | None = None
    stalls: int | None = None
    releases: int | None = None
    final: bool | None = None
    reason: str | None = None
    error_type: str | None = None
    error: str | None = None
    parent_id: int | None = None
    batch_id: int | None = None
    depends_on: Sequence[int] | None = None
    tags: Sequence[str] | None = None
    headers: Mapping[str, str] | None = None
    trace_id: str | None = None
    principal: str | None = None
    operation_id: int | None = None
    payload_bytes: int | None = None
    result_bytes: int | None = None
    sizes: Sequence[int] | None = None


class ShardRows:
    """The rows of a shard that are in no file yet, with the offset of the first row of each, and
    the journal's offset up to which they go.
    """

    __slots__ = ("count", "firsts", "journal_offset", "rows")

    def __init__(self, journal_offset: int) -> None:
        self.rows: list[Rows] = []
        self.firsts: list[int] = []
        self.count = 0
        self.journal_offset = journal_offset

    def add(self, journal_offset: int, rows: Sequence[Rows]) -> None:
        """Adds the rows of the next entry. Raises `OverflowError` if they are too many to be told
        apart by their offsets.
        """
        base = journal_offset * ROWS_PER_ENTRY
        index = 0
        for each in rows:
            self.firsts.append(base + index)
            index += each.total
        if index > ROWS_PER_ENTRY:
            raise OverflowError(f"{index} rows in one entry")
        self.rows += rows
        self.count += index
        self.journal_offset = journal_offset

    def take(self) -> tuple[list[Rows], list[int]]:
        """Removes and returns the rows and their offsets."""
        rows, firsts = self.rows, self.firsts
        self.rows, self.firsts, self.count = [], [], 0
        return rows, firsts
