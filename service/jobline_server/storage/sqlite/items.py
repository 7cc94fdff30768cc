"""Items: versions of them, staged by a checkpoint and seen after it. Functions of a connection.

A version carries the generation of the checkpoint that wrote it. Those above the shard's generation
are staged: nobody sees them until the shard row names their generation, and an opening deletes
them. Versions they replace are listed in `superseded` as they are staged, fall out of sight at the
same moment, and are deleted from that list afterwards, in slices.
"""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from jobline_server.storage.sqlite.statements import insert_many, load
from jobline_server.storage.store import BadRow, Fenced, ItemKey, ItemKind, ItemRow, ShardRow

# A page or slice: as many rows as fit, one at least.
PAGE_ROWS = 4_000
READ_BATCH_BYTES = 16 << 20
SQLITE_PAGE_BYTES = 8_192

BEFORE_ALL = (-1, -1)
_CHECKPOINT = struct.Struct("<QQI")
_NO_CHECKPOINT = zlib.crc32(bytes(_CHECKPOINT.size))
_SQL = load("items.sql")


class _Kinds(dict[int, ItemKind]):
    """Kinds by number. One that a newer version added stays a number, for the loader to refuse."""

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
    """Covers the columns too: a flipped bit must not hand a job another's id. They are mixed into
    the value the checksum begins with, where each bit makes a difference; packing them would cost
    more than the checksum."""
    seed = key ^ (key >> 32) ^ (kind << 24) ^ (shard << 14) ^ (generation * 0x9E3779B1)
    return zlib.crc32(blob, seed & 0xFFFFFFFF)


def shard_row(connection: sqlite3.Connection, shard: int) -> ShardRow:
    """A shard's row as it stands."""
    found = connection.execute(_SQL["shard_row"], {"shard": shard}).fetchone()
    if found is None:
        raise ValueError(f"the store has no shard {shard}")
    return ShardRow(*found)


def may_stage(connection: sqlite3.Connection, shard: int, epoch: int, generation: int) -> ShardRow:
    """The shard row, if this writer may stage this generation; else `Fenced`."""
    row = shard_row(connection, shard)
    if (row.epoch, row.generation + 1) != (epoch, generation):
        raise Fenced(
            f"shard {shard} is at epoch {row.epoch} and generation {row.generation}; "
            f"epoch {epoch} cannot stage generation {generation}",
            shards=(shard,),
        )
    return row


def checkpoint_checksum_of(generation: int, offset: int, chain: int) -> int:
    """Covers what a shard row says of its checkpoint; 0 before the first one."""
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
    """What a slice adds to the WAL: blobs, and a share of a page for each row and key in an
    index."""
    blobs = sum(len(row.blob) for row in rows)
    return blobs + (len(rows) + len(removals)) * SQLITE_PAGE_BYTES // 16


def finish(
    connection: sqlite3.Connection, shard: int, epoch: int, generation: int, offset: int, chain: int
) -> None:
    """Makes a generation the visible one. Part of a transaction."""
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
    """The visible items after a place. What was superseded must have been deleted."""
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
    """Moves the bad rows of a page out of the way. Part of a transaction."""
    bad = [row for row in page.rows if isinstance(row, BadRow)]
    for row, generation in zip(bad, page.bad_generations, strict=True):
        place = {"shard": row.shard, "kind": row.kind, "key": row.key, "generation": generation}
        connection.execute(_SQL["set_item_apart"], place)
        connection.execute(_SQL["delete_item"], place)


def delete_leftovers(
    connection: sqlite3.Connection, shard: ShardRow, after: tuple[int, int], limit_rows: int
) -> tuple[int, int] | None:
    """Deletes a slice of what an unfinished checkpoint staged. Part of a transaction. Returns where
    the next slice begins, None when nothing is left."""
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
    """Deletes a slice of what is superseded. Part of a transaction. Returns deleted and left."""
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
