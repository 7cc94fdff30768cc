"""Reads ended jobs in bounded slices. Functions of a connection, run on its thread.

A list walks by id over the indices that hold its queue and states, merged: those by queue and
state, those by state, or the table itself. A call passes at most `WALK_PARTS` parts of each,
however few of them match the query, and returns where the next call continues. SQLite looks for
parts of blobs itself: Python's lock is free meanwhile, and rows that do not match are never read
into Python. As it passes all those blobs, their bytes are bounded, too.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from heapq import merge
from operator import itemgetter
from typing import Any

from jobline_server.engine.values import KEPT_STATES, JobState
from jobline_server.storage.ended_store import (
    READ_BATCH_BYTES,
    DeadGroup,
    EndedLookup,
    EndedPage,
    EndedPart,
    EndedQuery,
    EndedRow,
)
from jobline_server.storage.sqlite.ended_ops import checksum_of
from jobline_server.storage.sqlite.statements import load

WALK_PARTS = 2_000
# Blobs of a call that searches them: some ten milliseconds, as one condition takes several passes.
SEARCH_BYTES = 4 << 20
_EVERY_ID = (1 << 63) - 1
_SQL = load("finished_queries.sql")


@dataclass(frozen=True, slots=True)
class _Source:
    """An index to walk, and the condition under which SQLite may use it."""

    index: str
    condition: str
    state: int = 0

    def statement(self, name: str, search: str = "") -> str:
        """Returns a statement over this source."""
        return _SQL[name].format(index=self.index, source=self.condition, search=search)


@dataclass(slots=True)
class _Page:
    """A page that is being filled."""

    room_jobs: int
    room_bytes: int = READ_BATCH_BYTES
    parts: list[EndedPart] = field(default_factory=list)
    bad: list[tuple[int, int]] = field(default_factory=list)
    last_id: int = -1

    def add(self, found: Sequence[Any], after_id: int) -> bool:
        """Adds the ids of a part above `after_id`; returns False when nothing more fits."""
        first_id = max(found[0], after_id + 1)
        left = found[0] + found[1] - first_id
        count = min(left, self.room_jobs)
        row = row_of(found)
        if row is None:
            self.bad.append((first_id, count))
        else:
            self.parts.append(EndedPart(first_id, count, row))
            self.room_bytes -= len(row.blob)
        self.room_jobs -= count
        self.last_id = first_id + count - 1
        return self.room_jobs > 0 and self.room_bytes > 0


def find_many(connection: sqlite3.Connection, job_ids: Sequence[int]) -> EndedLookup:
    """Returns the rows that hold these jobs. Consecutive ids of one row are one look-up."""
    rows: dict[int, EndedRow] = {}
    bad: list[int] = []
    row: EndedRow | None = None
    first_id = end_id = looks = size = 0
    for looked, job_id in enumerate(job_ids):
        if not first_id <= job_id < end_id:
            if looks == WALK_PARTS or size >= READ_BATCH_BYTES:
                return EndedLookup(rows, bad, looked)
            looks += 1
            found = connection.execute(_SQL["part_of"], {"job_id": job_id}).fetchone()
            if found is None or job_id >= found[0] + found[1]:
                continue  # the row before may still hold the ids behind this one
            first_id, end_id = found[0], found[0] + found[1]
            row = row_of(found)
            size += len(row.blob) if row is not None else 0
        if row is None:
            bad.append(job_id)
        else:
            rows[job_id] = row
    return EndedLookup(rows, bad, len(job_ids))


def page(connection: sqlite3.Connection, query: EndedQuery) -> EndedPage:
    """Returns a page of a list."""
    sources = _sources_of(query)
    values = _values_of(query, _start_of(connection, query.after_id))
    search = _search_of(query, values)
    end_statement = "search_end" if search else "window_end"
    ends = (_end_of(connection, end_statement, source, values) for source in sources)
    # Beyond the nearest of these ends one source is unread, so the page ends there.
    end = min((found for found in ends if found is not None), default=None)
    values["end"] = _EVERY_ID if end is None else end[0]
    filled = _Page(room_jobs=query.limit)
    with ExitStack() as opened:
        # Closed here, also after an error: SQLite lets no other thread do it, and an error keeps
        # this frame until it is collected, on any thread.
        walks = [
            opened.enter_context(closing(_walk(connection, one, search, values))) for one in sources
        ]
        for found in merge(*walks, key=itemgetter(0)):
            if not filled.add(found, query.after_id):
                return EndedPage(filled.parts, filled.bad, resume_after=filled.last_id)
    return EndedPage(filled.parts, filled.bad, resume_after=None if end is None else end[1])


def counts(connection: sqlite3.Connection) -> dict[tuple[str, int], int]:
    """Returns how many jobs are kept, by queue and state."""
    found = connection.execute(_SQL["counts"]).fetchall()
    return {(queue, state): jobs for queue, state, jobs in found}


def dead_statistics(connection: sqlite3.Connection, queue: str) -> list[DeadGroup]:
    """Returns the groups of dead jobs, the largest first."""
    found = connection.execute(_SQL["dead_statistics"], {"queue": queue}).fetchall()
    return [DeadGroup(*group) for group in found]


def row_of(found: Sequence[Any]) -> EndedRow | None:
    """Returns a row from the columns of `part_of`, `walk` and `every_part`; None if its checksum is
    bad."""
    _, _, queue, state, former_state, stale_ms, ended_ms, reason = found[:8]
    run_first, run_count, checksum, due_ms, keep_count = found[8:13]
    name, error_type, error_message, blob, retry_ms, delete_after_ms, delete_ms = found[13:]
    row = EndedRow(
        first_id=run_first,
        count=run_count,
        queue=queue,
        name=name,
        state=state,
        ended_ms=ended_ms,
        reason=reason,
        error_type=error_type,
        error_message=error_message,
        blob=blob or b"",
        former_state=former_state,
        stale_ms=stale_ms,
        due_ms=due_ms,
        keep_count=keep_count,
        retry_ms=retry_ms,
        delete_after_ms=delete_after_ms,
        delete_ms=delete_ms,
    )
    return row if checksum_of(row) == checksum else None


def _sources_of(query: EndedQuery) -> list[_Source]:
    """Returns the fewest indices that hold all jobs of a query. Conditions of partial indices are
    repeated literally: SQLite proves nothing about parameters
    (https://sqlite.org/partialindex.html)."""
    states = sorted(query.states & KEPT_STATES) if query.states else sorted(KEPT_STATES)
    if query.queue:
        index = "INDEXED BY ended_by_id"
        return [_Source(index, "queue = :queue AND state = :state", state) for state in states]
    if len(states) == len(KEPT_STATES):
        return [_Source("NOT INDEXED", "TRUE")]
    return [
        _Source("NOT INDEXED", "state = :state", state)
        if state == JobState.COMPLETED
        else _Source("INDEXED BY ended_rare", "state = :state AND state <> 5", state)
        for state in states
    ]


def _values_of(query: EndedQuery, start: int) -> dict[str, Any]:
    return {
        "queue": query.queue,
        "start": start,
        "reasons": json.dumps(sorted(query.reasons)) if query.reasons else None,
        "name": query.name,
        "error_type": query.error_type,
        "error_contains": query.error_contains,
        "ended_after_ms": query.ended_after_ms,
        "ended_before_ms": query.ended_before_ms,
    }


def _start_of(connection: sqlite3.Connection, after_id: int) -> int:
    """Returns the first id of the walk: the part that holds the next id may begin before it."""
    found = connection.execute(_SQL["begin_of"], {"job_id": after_id + 1}).fetchone()
    return found[0] if found and found[1] > after_id else after_id + 1


def _search_of(query: EndedQuery, values: dict[str, Any]) -> str:
    """Returns the condition on blobs as SQL, "" if there is none; adds its values."""
    conditions = []
    for parts in query.blob_parts:
        names = [f"part_{len(values) + number}" for number in range(len(parts))]
        values.update(zip(names, parts, strict=True))
        any_of = " OR ".join([_SQL["has_part"].format(part=name) for name in names])
        conditions.append(f"AND ({any_of})")
    return "\n   ".join(conditions)


def _end_of(
    connection: sqlite3.Connection, statement: str, source: _Source, values: dict[str, Any]
) -> tuple[int, int] | None:
    """Returns the last part of a source that this call may read, and its last id; None if it may
    read all of them."""
    bounds = {**values, "state": source.state, "parts": WALK_PARTS, "bytes": SEARCH_BYTES}
    found = connection.execute(source.statement(statement), bounds).fetchone()
    return None if found is None else (int(found[0]), int(found[1]))


def _walk(
    connection: sqlite3.Connection, source: _Source, search: str, values: dict[str, Any]
) -> Generator[Sequence[Any], None, None]:
    statement = source.statement("walk", search)
    cursor = connection.execute(statement, {**values, "state": source.state})
    try:
        yield from cursor
    finally:
        cursor.close()
