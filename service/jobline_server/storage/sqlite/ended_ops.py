"""Writes ended jobs: puts rows, marks and removes ids. Functions of a connection, on its thread.

The table has a row per part, and no two parts share an id. Every operation acts on whole parts:
where a span of ids begins or ends within a part, the part is cut in two first, and both refer to
one blob. That is rare; all else is done for many ids in one statement.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from itertools import groupby

from jobline_server.storage.ended_store import (
    EndedOp,
    EndedRow,
    MarkStale,
    PutEnded,
    PutOperation,
    RemoveEnded,
)
from jobline_server.storage.sqlite.statements import (
    ROWS_PER_STATEMENT,
    insert_many,
    load,
    repeated,
)

_SQL = load("finished_ops.sql")
_OVERLAP = "overlap"

Span = tuple[int, int]


def checksum_of(row: EndedRow) -> int:
    """Returns the checksum of all that a row is written with; not of its state, which changes."""
    numbers = [row.first_id, row.count, row.ended_ms, row.reason, row.due_ms, row.keep_count]
    if row.retry_ms is not None:  # rows of older formats have none, and keep their checksums
        numbers.append(row.retry_ms)
    if row.delete_after_ms is not None:
        numbers += [-1, row.delete_after_ms]  # no other list of numbers ends like this
    columns = "\0".join(
        (
            " ".join(map(str, numbers)),
            row.queue,
            row.name,
            row.error_type,
            row.error_message,
        )
    )
    return zlib.crc32(row.blob, zlib.crc32(columns.encode("utf-8", "surrogatepass")))


def apply(connection: sqlite3.Connection, ops: Sequence[EndedOp]) -> None:
    """Applies operations in order, consecutive ones of a kind together. Part of a transaction."""
    for (kind, at_ms, delete_ms), group in groupby(ops, key=_kind_of):
        same = list(group)
        if kind is PutEnded:
            _put_all(connection, [op.row for op in same if isinstance(op, PutEnded)])
        elif kind is MarkStale:
            spans = _spans_of(same)
            _cut_at_ends(connection, spans)
            times = (at_ms, at_ms, delete_ms, delete_ms)
            insert_many(connection, _SQL["mark_spans_stale"], spans, *times)
        elif kind is PutOperation:
            rows = [op.row for op in same if isinstance(op, PutOperation)]
            connection.executemany(_SQL["put_operation"], rows)
        else:
            _remove(connection, _spans_of(same))


def remove_queue(connection: sqlite3.Connection, queue: str, limit_rows: int) -> int:
    """Deletes a slice of a queue's parts; returns how many. Part of a transaction."""
    values = {"queue": queue, "limit_rows": limit_rows}
    return connection.execute(_SQL["remove_queue"], values).rowcount


def note_sync(connection: sqlite3.Connection) -> None:
    """Changes something, so that there is something to commit."""
    connection.execute(_SQL["note_sync"])


def _kind_of(op: EndedOp) -> tuple[type, int, int]:
    """Returns what operations have in common that are applied together: kind, and times."""
    if isinstance(op, MarkStale):
        return MarkStale, op.at_ms, op.delete_ms
    return type(op), 0, 0


def _spans_of(ops: Sequence[EndedOp]) -> list[Span]:
    """Returns the spans of operations, joined: a part that is changed as a whole is not cut, which
    would copy its blob."""
    spans: list[Span] = []
    for op in sorted(
        (op for op in ops if isinstance(op, MarkStale | RemoveEnded)), key=lambda op: op.first_id
    ):
        end = op.first_id + op.count
        if spans and op.first_id <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], end))
        else:
            spans.append((op.first_id, end))
    return spans


def _put_all(connection: sqlite3.Connection, rows: Sequence[EndedRow]) -> None:
    """Inserts rows as if all their ids were new: they are, unless jobs ended twice or operations
    are repeated. Only where that fails, the ids are removed first."""
    for start in range(0, len(rows), ROWS_PER_STATEMENT):
        chunk = rows[start : start + ROWS_PER_STATEMENT]
        if _inserted(connection, chunk):
            continue
        _remove(connection, [(row.first_id, row.first_id + row.count) for row in chunk])
        if _inserted(connection, chunk):
            continue
        for row in chunk:  # some of them share ids: the last one counts
            _remove(connection, [(row.first_id, row.first_id + row.count)])
            _inserted(connection, [row])


def _inserted(connection: sqlite3.Connection, rows: Sequence[EndedRow]) -> bool:
    """Inserts rows; returns False, with none inserted, if an id is there already."""
    values = [
        (
            row.first_id,
            row.count,
            row.queue,
            row.state,
            row.former_state,
            row.stale_ms,
            row.ended_ms,
            row.reason,
            len(row.blob),
            row.first_id,
            row.count,
            checksum_of(row),
            row.due_ms,
            row.keep_count,
            row.name,
            row.error_type,
            row.error_message,
            row.blob,
            row.retry_ms,
            row.delete_after_ms,
        )
        for row in rows
    ]
    try:
        insert_many(connection, _SQL["put_rows"], values)
    except sqlite3.IntegrityError as error:
        if str(error) != _OVERLAP:
            raise
        return False
    return True


def _remove(connection: sqlite3.Connection, spans: Sequence[Span]) -> None:
    _cut_at_ends(connection, spans)
    insert_many(connection, _SQL["remove_spans"], spans)


def _cut_at_ends(connection: sqlite3.Connection, spans: Sequence[Span]) -> None:
    """Cuts parts so that each lies wholly inside or outside each span."""
    ends = sorted({end for span in spans for end in span})
    for at in _straddled(connection, ends):
        _cut(connection, at)


def _straddled(connection: sqlite3.Connection, ends: Sequence[int]) -> Iterator[int]:
    for start in range(0, len(ends), ROWS_PER_STATEMENT):
        chunk = ends[start : start + ROWS_PER_STATEMENT]
        found = connection.execute(repeated(_SQL["find_straddled"], len(chunk)), chunk).fetchall()
        yield from (at for (at,) in found)


def _cut(connection: sqlite3.Connection, at: int) -> None:
    """Cuts the part around an id in two; the second begins with it."""
    first_id, count, size = connection.execute(_SQL["part_before"], {"at": at}).fetchone()
    left_count = at - first_id
    left_size = size * left_count // count
    part = {"first_id": first_id}
    connection.execute(_SQL["share_blob"], part)
    connection.execute(_SQL["refer_to_blob"], part)
    connection.execute(_SQL["shorten_part"], {**part, "count": left_count, "bytes": left_size})
    rest = {"at": at, "count": count - left_count, "bytes": size - left_size}
    connection.execute(_SQL["add_part"], {**part, **rest})
