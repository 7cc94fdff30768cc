"""The watermark of a copy, which is made of its shard rows: a start expects one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from jobline_server.engine import limits
from jobline_server.offline.journal_checks import shard_rows
from jobline_server.offline.opening import StoreFiles, opened
from jobline_server.storage.sqlite.bootstrap import DATABASE_FILE
from jobline_server.storage.sqlite.statements import load
from jobline_server.storage.sqlite.store import PROMISE_FILE
from jobline_server.storage.sqlite.watermark import WatermarkFile
from jobline_server.storage.store import ShardRow

_SQL = load("offline.sql")

# More ids a second than a shard gives out, whatever is pushed.
IDS_A_SECOND = 1 << 20
# A start skips a block of ids in each shard: room for so many starts.
STARTS = 256
# Of the ids that a shard has left, a restore skips at most this share.
SHARE_MAX = 8
# Clocks of two machines differ by less; what is later by more was made by one that was ahead.
CLOCKS_APART_MS = 60_000
# A server that is started again and again may have epochs that are ahead of the clock.
EPOCHS_AHEAD = 3_600


def make_promise(directory: Path) -> list[ShardRow]:
    """Makes the watermark of a directory anew, as if all that is there was acknowledged, and
    nothing else; returns the shard rows. Raises `CannotRead` or sqlite3.Error.
    """
    files = StoreFiles(directory, (DATABASE_FILE,), whole=False)
    with opened(files, DATABASE_FILE) as (connection, _):
        rows = [row for row, _ in shard_rows(connection)]
    file = directory / PROMISE_FILE
    file.unlink(missing_ok=True)
    marks = WatermarkFile(file, len(rows))
    try:
        for row in rows:
            marks.keep(row.shard, row.epoch, row.offset, row.chain, row.id_ceiling)
    finally:
        marks.close()
    return rows


def raise_ids(directory: Path, at_ms: int, now_ms: int) -> bool:
    """Raises epochs and ids of the state of `at_ms`, so that a server gives out none that were
    given out since; returns whether that is certain. Raises sqlite3.Error.

    How many ids that were is known to nobody any more: it takes more than there can have been in
    that time. Of a backup that is of the future not even the time is known.
    """
    ids = 1 << limits.SEQUENCE_BITS
    lost_ms = now_ms - at_ms + CLOCKS_APART_MS
    lost_seconds = lost_ms // limits.SECOND_MS + 1
    wanted = lost_seconds * IDS_A_SECOND + STARTS * limits.ID_BLOCK if lost_ms >= 0 else ids
    epoch = max((now_ms - limits.EPOCH_ZERO_MS) // limits.SECOND_MS, 1) + EPOCHS_AHEAD
    values = {
        "epoch": epoch,
        "wanted": wanted,
        "ids": ids,
        "share": SHARE_MAX,
    }
    with closing(sqlite3.connect(directory / DATABASE_FILE, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        ceilings = connection.execute(_SQL["highest_ceiling"]).fetchone()
        connection.execute(_SQL["raise_all"], values)
    return wanted <= (ids - int(ceilings[0])) // SHARE_MAX
