"""What retention asks of ended jobs: which are due, of what kind, a slice at a time. Functions of a
connection, run on its thread.

Each question walks one index from the end where the answer lies, and only as far as the answer
goes. Parts are not cut: a part counts as ended with the last of its jobs.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from typing import Any

from jobline_server.engine.values import JobState
from jobline_server.storage.ended_store import EndedSpan, OwnCount
from jobline_server.storage.sqlite.statements import load

_SQL = load("finished_retention.sql")
# Behind every queue, state and count: a blob sorts behind all text.
_BEHIND_ALL = {"queue": b"", "state": 0, "keep_count": 0}


def surplus(
    connection: sqlite3.Connection,
    queue: str,
    state: int,
    *,
    ended_before_ms: int,
    keep_count: int,
    limit: int,
) -> list[EndedSpan]:
    """The oldest parts without an age of their own that ended before a moment, as long as
    `keep_count` such jobs stay."""
    of = {"queue": queue, "state": state}
    _, _, jobs = connection.execute(_SQL["kept"], of).fetchone()
    oldest = {**of, "ended_before_ms": ended_before_ms, "limit": limit}
    spans = []
    for first_id, count in connection.execute(_SQL["oldest_by_age"], oldest).fetchall():
        if jobs - count < keep_count:
            break
        jobs -= count
        spans.append(EndedSpan(queue, state, first_id, count))
    return spans


def oldest_ms(connection: sqlite3.Connection, queue: str, state: int) -> int | None:
    """When the oldest part without an age of its own ended."""
    found = connection.execute(_SQL["oldest_ms"], {"queue": queue, "state": state}).fetchone()
    return int(found[0]) if found else None


def due(connection: sqlite3.Connection, *, now_ms: int, limit: int) -> list[EndedSpan]:
    """The parts whose own age is over."""
    found = connection.execute(_SQL["due"], {"now_ms": now_ms, "limit": limit}).fetchall()
    return [EndedSpan(*part) for part in found]


def evictable(
    connection: sqlite3.Connection,
    queue: str,
    state: int,
    *,
    keep_count: int,
    keep_bytes: int,
    limit: int,
) -> list[EndedSpan]:
    """The oldest parts beyond a number of jobs or bytes."""
    of = {"queue": queue, "state": state}
    jobs, size, _ = connection.execute(_SQL["kept"], of).fetchone()
    spans = []
    for first_id, count, part_size, _ in connection.execute(
        _SQL["oldest"], {**of, "limit": limit}
    ).fetchall():
        if jobs - count < keep_count and size <= keep_bytes:
            break
        jobs, size = jobs - count, size - part_size
        spans.append(EndedSpan(queue, state, first_id, count))
    return spans


def next_own_count(connection: sqlite3.Connection, *, before: OwnCount | None) -> OwnCount | None:
    """The next queue, state and count that jobs have of their own, the last ones first."""
    values: dict[str, Any] = _BEHIND_ALL
    if before is not None:
        values = {"queue": before.queue, "state": before.state, "keep_count": before.count}
    found = connection.execute(_SQL["next_own_count"], values).fetchone()
    return OwnCount(*found) if found else None


def beyond_own_count(
    connection: sqlite3.Connection, own: OwnCount, *, limit: int
) -> list[EndedSpan]:
    """The oldest parts with this count that so many jobs ended after. The older one is, the more
    did; so the first that is to stay is found by halving."""
    of = {"queue": own.queue, "state": own.state}
    jobs, _, _ = connection.execute(_SQL["kept"], of).fetchone()
    oldest = {**of, "keep_count": own.count, "limit": limit}
    parts = connection.execute(_SQL["oldest_counted"], oldest).fetchall()

    def stays(part: tuple[int, int, int]) -> bool:
        first_id, _, ended_ms = part
        place = {**of, "first_id": first_id, "ended_ms": ended_ms}
        return not _has_newer(connection, place, keep=own.count, surplus=jobs - own.count)

    due_parts = parts[: bisect_left(parts, True, key=stays)]
    return [EndedSpan(own.queue, own.state, first_id, count) for first_id, count, _ in due_parts]


def _has_newer(
    connection: sqlite3.Connection, place: dict[str, Any], *, keep: int, surplus: int
) -> bool:
    """Whether at least `keep` jobs ended after the part at `place`, which is to say that it and
    those before it are at most `surplus`. Counted on the side where less can be to count."""
    if keep <= surplus:
        return _beside(connection, ">", place, enough=keep) >= keep
    return surplus > 0 and _beside(connection, "<=", place, enough=surplus + 1) <= surplus


def _beside(connection: sqlite3.Connection, side: str, place: dict[str, Any], enough: int) -> int:
    """Jobs of the parts after or up to `place`; that many parts are enough."""
    statement = _SQL["jobs_beside"].format(side=side)
    return int(connection.execute(statement, {**place, "enough": enough}).fetchone()[0])


def stalest(connection: sqlite3.Connection, *, stale_before_ms: int, limit: int) -> list[EndedSpan]:
    """The parts that have been stale for longest."""
    values = {"stale_before_ms": stale_before_ms, "limit": limit}
    found = connection.execute(_SQL["stalest"], values).fetchall()
    return [
        EndedSpan(queue, int(JobState.STALE), first_id, count) for queue, first_id, count in found
    ]
