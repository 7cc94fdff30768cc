"""Appends, reads and deletes rows of the journal. Functions of a connection, run on its thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from jobline_server.storage.sqlite.failures import autocommit, transact
from jobline_server.storage.sqlite.statements import load, repeated
from jobline_server.storage.store import Fenced, JournalRow, ShardRow

OFFSET_BITS = 48
OFFSET_MAX = (1 << OFFSET_BITS) - 1
# The most rows, and bytes of blobs, in a page; one row always fits.
PAGE_ROWS = 2_000
READ_BATCH_BYTES = 16 << 20

# No checksum is this: replaces columns of the wrong type.
_ROTTEN = -1

_SQL = load("journal.sql")


def position_of(shard: int, offset: int) -> int:
    """Returns the key of a row: by shard, then by offset."""
    return shard << OFFSET_BITS | offset


def append(
    connection: sqlite3.Connection, rows: Sequence[JournalRow], id_ceilings: Mapping[int, int]
) -> None:
    """Appends all rows in one transaction: one statement, unless a ceiling moves without a row."""
    try:
        _append(connection, rows, id_ceilings)
    except Fenced as fenced:
        shards = _fenced_among(connection, rows)
        named = ", ".join(map(str, sorted(shards)))
        message = f"the row of shard {named} has another epoch, offset or chain than continued"
        raise Fenced(message, shards=shards) from fenced


def _append(
    connection: sqlite3.Connection, rows: Sequence[JournalRow], id_ceilings: Mapping[int, int]
) -> None:
    parameters: list[int | bytes | None] = []
    for row in rows:
        parameters += (
            row.shard << OFFSET_BITS | row.offset,
            row.epoch,
            row.chain_before,
            row.chain,
            id_ceilings.get(row.shard),
            row.blob,
        )
    statement = repeated(_SQL["append_rows"], len(rows)) if rows else ""
    alone = id_ceilings.keys() - {row.shard for row in rows} if id_ceilings else None
    if not alone:
        autocommit(connection, lambda: connection.execute(statement, parameters))
        return

    def append_and_raise() -> None:
        if rows:
            connection.execute(statement, parameters)
        for shard in sorted(alone):
            connection.execute(
                _SQL["raise_ceiling"], {"shard": shard, "id_ceiling": id_ceilings[shard]}
            )

    transact(connection, append_and_raise)


def _fenced_among(connection: sqlite3.Connection, rows: Sequence[JournalRow]) -> set[int]:
    """Returns the shards of rows that do not continue their shard row."""
    return {
        row.shard
        for row in rows
        if connection.execute(_SQL["fence"], {"shard": row.shard}).fetchone()
        != (row.epoch, row.offset - 1, row.chain_before)
    }


def read_page(connection: sqlite3.Connection, shard: ShardRow, after: int) -> list[JournalRow]:
    """Returns the rows after an offset, up to that of the shard row and one more, which would be a
    sign of damage."""
    last = min(shard.offset + 1, OFFSET_MAX)
    bounds = {"after": position_of(shard.shard, after), "last": position_of(shard.shard, last)}
    rows: list[JournalRow] = []
    room = READ_BATCH_BYTES
    cursor = connection.execute(_SQL["read_rows"], bounds)
    for found in cursor:
        row = _row(shard.shard, found)
        rows.append(row)
        room -= len(row.blob)
        if room <= 0 or len(rows) == PAGE_ROWS:
            break
    cursor.close()
    return rows


def _row(shard: int, found: Sequence[Any]) -> JournalRow:
    position, epoch, chain_before, chain, blob = found
    offset = position & OFFSET_MAX
    if isinstance(blob, bytes) and type(epoch) is type(chain_before) is type(chain) is int:
        return JournalRow(shard, epoch, offset, chain_before, chain, blob)
    return JournalRow(shard, 0, offset, _ROTTEN, _ROTTEN, b"")


def chain_at(connection: sqlite3.Connection, shard: int, offset: int) -> int | None:
    """Returns the chain after a commit, None if its row is gone."""
    found = connection.execute(
        _SQL["chain_at"], {"position": position_of(shard, offset)}
    ).fetchone()
    return None if found is None else int(found[0])


def cut(connection: sqlite3.Connection, shard: int, offset: int, chain: int, case: int) -> int:
    """Sets apart all rows after an offset and moves the shard row there. Part of a transaction.
    Returns how many rows."""
    bounds = {"after": position_of(shard, offset), "last": position_of(shard, OFFSET_MAX)}
    rows = connection.execute(_SQL["set_rows_apart"], {**bounds, "recovery_case": case}).rowcount
    connection.execute(_SQL["delete_rows"], bounds)
    connection.execute(_SQL["cut_shard_row"], {"shard": shard, "offset": offset, "chain": chain})
    return rows


def truncate(connection: sqlite3.Connection, shard: ShardRow, limit_rows: int) -> tuple[int, int]:
    """Deletes a slice of the rows up to the checkpoint. Part of a transaction. Returns how many
    were deleted, and how many are left."""
    bounds = {
        "after": position_of(shard.shard, 0),
        "last": position_of(shard.shard, shard.checkpoint_offset),
    }
    limits = {"limit_rows": limit_rows, "limit_bytes": READ_BATCH_BYTES}
    end = connection.execute(_SQL["slice_end"], {**bounds, **limits}).fetchone()[0]
    if end is None:
        return 0, 0
    slice_bounds = {"after": bounds["after"], "last": end}
    deleted = connection.execute(_SQL["delete_rows"], slice_bounds).rowcount
    first = connection.execute(_SQL["first_position"], bounds).fetchone()[0]
    return deleted, 0 if first is None else int(bounds["last"]) - int(first) + 1
