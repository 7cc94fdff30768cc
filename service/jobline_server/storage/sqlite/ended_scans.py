"""Scans ended jobs by time, without their contents. Functions of a connection, run on its thread.

Each scan walks the index that has its order, from one key to another, and no further than its
limit.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from jobline_server.storage.ended_store import (
    EndedScan,
    EndedSpan,
    EndedTotals,
    OwnCount,
    ScanOrder,
)
from jobline_server.storage.sqlite.statements import load

_SQL = load("finished_scans.sql")
_ORDERED = "ORDER BY ended_ms, first_id"
# Behind every queue, state and count: a blob sorts behind all text.
_BEHIND_ALL = {"queue": b"", "state": 0, "keep_count": 0}


def scan(connection: sqlite3.Connection, scan: EndedScan) -> list[EndedSpan]:
    """Returns parts in the order of a scan."""
    statement = _statement_of(scan).format(order_by_ended_ms=_ORDERED)
    found = connection.execute(statement, _values_of(scan)).fetchall()
    return list(map(EndedSpan._make, found))


def count(connection: sqlite3.Connection, scan: EndedScan) -> int:
    """Returns how many jobs a scan finds. Which parts it counts does not matter: the two indices of
    a queue and state need not be merged.
    """
    statement = _SQL["count"].format(scan=_statement_of(scan).format(order_by_ended_ms=""))
    return int(connection.execute(statement, _values_of(scan)).fetchone()[0])


def totals(connection: sqlite3.Connection, *, queue: str, state: int) -> EndedTotals:
    """Returns what is kept in a queue and state."""
    values = {"queue": queue, "state": state}
    return EndedTotals(*connection.execute(_SQL["totals"], values).fetchone())


def next_own_count(connection: sqlite3.Connection, *, before: OwnCount | None) -> OwnCount | None:
    """Returns the last queue, state and count of jobs' own before another."""
    values: dict[str, Any] = _BEHIND_ALL
    if before is not None:
        values = {"queue": before.queue, "state": before.state, "keep_count": before.count}
    found = connection.execute(_SQL["next_own_count"], values).fetchone()
    return OwnCount(*found) if found else None


def _statement_of(scan: EndedScan) -> str:
    if scan.order is ScanOrder.DUE:
        return _SQL["due"]
    if scan.order is ScanOrder.STALE:
        return _SQL["stale"]
    if scan.order is ScanOrder.RETRY:
        return _SQL["retry"]
    if scan.keep_count is not None:
        return _SQL["ended_by_count"]
    return _SQL["ended_by_queue_age" if scan.by_queue_age else "ended"]


def _values_of(scan: EndedScan) -> dict[str, Any]:
    after_ms, after_id = scan.after
    until_ms, until_id = scan.until
    return {
        "queue": scan.queue,
        "state": scan.state,
        "keep_count": scan.keep_count,
        "after_ms": after_ms,
        "after_id": after_id,
        "until_ms": until_ms,
        "until_id": until_id,
        "limit": scan.limit,
    }
