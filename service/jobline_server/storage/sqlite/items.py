"""Items: versions that a checkpoint stages and then makes visible. Functions of a connection.

A version has the generation of the checkpoint that wrote it. Versions above the shard's generation
are staged: they are not visible until the shard row has their generation, and an opening deletes
them. The versions that they replace are listed in `superseded` as they are staged, become invisible
at the same time, and are deleted afterwards, in slices.
"""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from jobline_server.storage.sqlite.statements import insert_many, load
from jobline_server.storage.store import BadRow, Fenced, ItemKey, ItemKind, ItemRow, ShardRow

# The most rows, and bytes of blobs, in a page or slice; one row always fits.
PAGE_ROWS = 4_000
READ_BATCH_BYTES = 16 << 20
SQLITE_PAGE_BYTES = 8_192

BEFORE_ALL = (-1, -1)
_CHECKPOINT = struct.Struct("<QQI")
_NO_CHECKPOINT = zlib.crc32(bytes(_CHECKPOINT.size))
_SQL = load("items.sql")


class _Kinds(dict[int, ItemKind]):
    """Kinds by number. A kind of a newer version stays a number, which the loader refuses."""

    def __missing__(self, kind: int) -> int:
        return kind


_KINDS = _Kinds({int(kind): kind for kind in ItemKind})


@dataclass(frozen=True, slots=True)
class Page:
    """Items in order; `last` is where the next page begins, None after the last one."""

    rows: list[ItemRow | BadRow]
    bad_generations: list[int]
    last: tuple[int, int] | None


def checksum_of(shard: int, kind: int, key: int, generation: int, blob: bytes) -> int:
    """Returns the checksum of a version. It covers the columns too: a flipped bit must not give a
    job another's id. They are mixed into the initial value, where each bit makes a difference; to
    pack them would cost more than the checksum."""
    seed = key ^ (key >> 32) ^ (kind << 24) ^ (shard << 14) ^ (generation * 0x9E3779B1)
    return zlib.crc32(blob, seed & 0xFFFFFFFF)


def shard_row(connection: sqlite3.Connection, shard: int) -> ShardRow:
    """Returns the row of a shard."""
    found = connection.execute(_SQL["shard_row"], {"shard": shard}).fetchone()
    if found is None:
        raise ValueError(f"the store has no shard {shard}")
    return ShardRow(*found)


def may_stage(connection: sqlite3.Connection, shard: int, epoch: int, generation: int) -> ShardRow:
    """Returns the shard row if this writer may stage this generation; else raises `Fenced`."""
    row = shard_row(connection, shard)
    if (row.epoch, row.generation + 1) != (epoch, generation):
        raise Fenced(
            f"shard {shard} is at epoch {row.epoch} and generation {row.generation}; "
            f"epoch {epoch} cannot stage generation {generation}",
            shards=(shard,),
        )
    return row


def checkpoint_checksum_of(generation: int, offset: int, chain: int) -> int:
    """Returns the checksum of the checkpoint's columns in a shard row; 0 before the first one."""
    return zlib.crc32(_CHECKPOINT.pack(generation, offset, chain)) ^ _NO_CHECKPOINT


def stage(
    connection: sqlite3.Connection,
    shard: int,
    epoch: int,
    generation: int,
    rows: Sequence[ItemRow],
    removals: Sequence[ItemKey],
) -> None:
    """Writes a slice of a checkpoint. Part of a transaction."""
    may_stage(connection, shard, epoch, generation)
    insert_many(connection, _SQL["supersede_removed"], removals, shard, generation)
    insert_many(connection, _SQL["unstage_removed"], removals, shard, generation)
    insert_many(
        connection,
        _SQL["put_items"],
        [
            (
                shard,
                int(row.kind),
                row.key,
                generation,
                checksum_of(shard, row.kind, row.key, generation, row.blob),
                row.blob,
            )
            for row in rows
        ],
    )


def bytes_of(rows: Sequence[ItemRow], removals: Sequence[ItemKey]) -> int:
    """Returns what a slice adds to the WAL, about: blobs, and a share of a page of an index for
    each row and key."""
    blobs = sum(len(row.blob) for row in rows)
    return blobs + (len(rows) + len(removals)) * SQLITE_PAGE_BYTES // 16


def finish(
    connection: sqlite3.Connection, shard: int, epoch: int, generation: int, offset: int, chain: int
) -> None:
    """Makes a generation visible. Part of a transaction."""
    flip = {
        "shard": shard,
        "epoch": epoch,
        "generation": generation,
        "offset": offset,
        "chain": chain,
        "checksum": checkpoint_checksum_of(generation, offset, chain),
    }
    if connection.execute(_SQL["finish_checkpoint"], flip).rowcount != 1:
        raise Fenced(
            f"shard {shard} cannot finish generation {generation} at offset {offset}",
            shards=(shard,),
        )


def read_page(connection: sqlite3.Connection, shard: ShardRow, after: tuple[int, int]) -> Page:
    """Returns the visible items after a place. Superseded versions must have been deleted."""
    number, room = shard.shard, READ_BATCH_BYTES
    rows: list[ItemRow | BadRow] = []
    bad_generations: list[int] = []
    cursor = connection.execute(
        _SQL["read_items"],
        {"shard": number, "kind": after[0], "key": after[1], "generation": shard.generation},
    )
    last: tuple[int, int] | None = None
    for kind, key, generation, checksum, blob in cursor:
        try:
            good = checksum == checksum_of(number, kind, key, generation, blob)
            row: ItemRow | BadRow = ItemRow(number, _KINDS[kind], key, blob)
        except TypeError:  # NULL where a number or a blob was
            good = False
        if not good:
            row = BadRow(number, kind, key, bytes(blob or b""))
            bad_generations.append(generation)
        rows.append(row)
        room -= len(blob or b"")
        if room <= 0 or len(rows) == PAGE_ROWS:
            last = (kind, key)
            break
    cursor.close()
    return Page(rows, bad_generations, last)


def set_apart(connection: sqlite3.Connection, page: Page) -> None:
    """Sets the bad rows of a page apart. Part of a transaction."""
    bad = [row for row in page.rows if isinstance(row, BadRow)]
    for row, generation in zip(bad, page.bad_generations, strict=True):
        place = {"shard": row.shard, "kind": row.kind, "key": row.key, "generation": generation}
        connection.execute(_SQL["set_item_apart"], place)
        connection.execute(_SQL["delete_item"], place)


def delete_leftovers(
    connection: sqlite3.Connection, shard: ShardRow, after: tuple[int, int], limit_rows: int
) -> tuple[int, int] | None:
    """Deletes a slice of what an unfinished checkpoint staged. Part of a transaction. Returns where
    the next slice begins, None if there is none."""
    slice_ = {
        "shard": shard.shard,
        "kind": after[0],
        "key": after[1],
        "generation": shard.generation + 1,
        "limit_rows": limit_rows,
    }
    places = connection.execute(_SQL["find_leftovers"], slice_).fetchall()
    if places:
        kind, key = places[-1]
        connection.execute(_SQL["delete_leftovers"], {**slice_, "last_kind": kind, "last_key": key})
    if len(places) == limit_rows:
        return int(places[-1][0]), int(places[-1][1])
    connection.execute(
        _SQL["forget_superseded"], {"shard": shard.shard, "generation": shard.generation}
    )
    return None


def truncate(connection: sqlite3.Connection, shard: ShardRow, limit_rows: int) -> tuple[int, int]:
    """Deletes a slice of superseded versions. Part of a transaction. Returns how many were deleted,
    and how many are left."""
    due = {"shard": shard.shard, "generation": shard.generation}
    rows = connection.execute(
        _SQL["count_slice"], {**due, "limit_rows": limit_rows, "limit_bytes": READ_BATCH_BYTES}
    ).fetchone()[0]
    if not rows:
        return 0, 0
    connection.execute(_SQL["delete_superseded_items"], {**due, "limit_rows": rows})
    connection.execute(_SQL["delete_superseded"], {**due, "limit_rows": rows})
    left = connection.execute(
        _SQL["count_superseded"], {**due, "limit_rows": limit_rows}
    ).fetchone()
    return int(rows), int(left[0])
