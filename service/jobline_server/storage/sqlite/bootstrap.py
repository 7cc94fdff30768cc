"""Opening: makes or checks the file, compares it with the watermark, takes shards.

Functions of a connection, run on its thread. Nothing is changed before everything was compared.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import astuple, dataclass, replace
from functools import partial

from jobline_server.storage.journal_check import JournalCheck
from jobline_server.storage.recovery_cases import (
    CHECKPOINT_UNREADABLE,
    CommitMark,
    Decision,
    RecoveryCase,
    Unreadable,
    judge_commit_mark,
)
from jobline_server.storage.sqlite import journal
from jobline_server.storage.sqlite.failures import autocommit, transact
from jobline_server.storage.sqlite.items import checkpoint_checksum_of, shard_row
from jobline_server.storage.sqlite.losses import WAY_OUT, Losses
from jobline_server.storage.sqlite.statements import load, script
from jobline_server.storage.sqlite.watermark import WatermarkFile
from jobline_server.storage.store import (
    CommitRefused,
    CommitUnknown,
    DataLoss,
    DiskFull,
    ShardRow,
    StoreRefused,
)


@dataclass(frozen=True, slots=True)
class Format:
    """The format of a file: how it is recognised, made and upgraded."""

    application_id: int
    version: int
    script: str
    # By the version that they upgrade from.
    upgrades: Mapping[int, str]


FORMAT = Format(  # "JBLN"
    0x4A424C4E,
    4,
    "schema.sql",
    {1: "upgrade_2.sql", 2: "upgrade_3.sql", 3: "upgrade_4.sql"},
)
DATABASE_FILE = "jobline.db"
SHARDS_DEFAULT = 8
SHARDS_MAX = 1_024

_SQL = load("items.sql")


def prepare(connection: sqlite3.Connection, shards: int) -> int:
    """Makes the tables of a new file or checks those of an old one; returns the number of
    shards."""
    if not 0 <= shards <= SHARDS_MAX:
        raise StoreRefused(f"{shards} shards asked for; a store has 1 to {SHARDS_MAX}")
    if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0:
        create(connection, FORMAT.script, {"shards": str(shards or SHARDS_DEFAULT)})
    upgrade(connection, FORMAT)
    check_format(connection, DATABASE_FILE, FORMAT)
    found = int(connection.execute("SELECT shards FROM store").fetchone()[0])
    if shards not in (0, found):
        raise StoreRefused(
            f"the store was made with {found} shards and {shards} are asked for; the number is "
            "fixed, because it decides where each queue lives"
        )
    return found


def create(connection: sqlite3.Connection, name: str, values: Mapping[str, str]) -> None:
    """Runs a schema script, which is one transaction."""
    text = _filled(name, values)
    try:
        autocommit(connection, lambda: connection.executescript(text))
    except DiskFull:
        raise
    except (CommitRefused, CommitUnknown) as failure:
        raise StoreRefused(f"the store could not be made: {failure}") from failure


def upgrade(connection: sqlite3.Connection, ours: Format) -> None:
    """Upgrades a file from an older format to this one, one transaction per version."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != ours.application_id:
        return
    while True:
        found = connection.execute("PRAGMA user_version").fetchone()[0]
        step = ours.upgrades.get(found)
        if step is None:
            return
        try:
            autocommit(connection, partial(connection.executescript, script(step)))
        except CommitUnknown as failure:
            raise StoreRefused(f"format {found} cannot be brought on: {failure}") from failure


def check_format(connection: sqlite3.Connection, file: str, ours: Format) -> None:
    """Refuses a file of another kind or format, and one whose schema is damaged: a trigger that
    lost a condition would not be noticed otherwise."""
    found_id = connection.execute("PRAGMA application_id").fetchone()[0]
    found_version = connection.execute("PRAGMA user_version").fetchone()[0]
    if found_id != ours.application_id:
        raise StoreRefused(f"{file} is a database of something else (application id {found_id:#x})")
    if found_version != ours.version:
        raise StoreRefused(
            f"{file} has format {found_version}; this version reads format {ours.version}"
        )
    if not has_schema_of(connection, ours):
        raise StoreRefused(f"{file} is damaged: its schema is not the one of format {ours.version}")


def has_schema_of(connection: sqlite3.Connection, ours: Format) -> bool:
    """Returns whether the schema of a file is that of a format, to the letter."""
    return _schema_of(connection) == _schema_as_made(ours.script)


def _filled(name: str, values: Mapping[str, str]) -> str:
    text = script(name)
    for field, value in values.items():
        text = text.replace("{" + field + "}", value)
    return text


def _schema_of(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    statement = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"
    return connection.execute(statement).fetchall()


def _schema_as_made(name: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(":memory:")) as example:
        create(example, name, {"shards": "1"})
        return _schema_of(example)


def check_structure(connection: sqlite3.Connection, losses: Losses) -> None:
    """Refuses a file with inconsistent pages or indices: the checksums of rows do not show that a
    row is missing. A million items take less than a second."""
    found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if found == "ok":
        return
    losses.meet(f"{DATABASE_FILE} is damaged: {found}; restore a backup")
    # Rows have checksums, so indices can be rebuilt from them.
    autocommit(connection, lambda: connection.execute("REINDEX"))


def compare_with_watermark(
    connection: sqlite3.Connection, watermarks: WatermarkFile, losses: Losses
) -> None:
    """Refuses a store that lost acknowledged commits, or accepts the loss for good."""
    for *columns, checksum in connection.execute(_SQL["all_shard_rows"]).fetchall():
        row = ShardRow(*columns)
        watermark = watermarks.read(row.shard)
        case = case_of(connection, row, watermark, checksum)
        if case.decision is Decision.GO_ON:
            continue
        acknowledged = (
            f"; the watermark is {watermark}" if isinstance(watermark, CommitMark) else ""
        )
        losses.meet(f"shard {row.shard} at offset {row.offset}: {case}{acknowledged}")
        transact(connection, partial(_accept_loss, connection, row, watermark))
        watermarks.renew(row.shard)


def case_of(
    connection: sqlite3.Connection,
    row: ShardRow,
    watermark: CommitMark | Unreadable | None,
    checksum: int,
) -> RecoveryCase:
    """Returns the case of a shard row, by the checksum that stands with it and its watermark."""
    if not all(isinstance(column, int) for column in astuple(row)):
        return CHECKPOINT_UNREADABLE
    if checksum != checkpoint_checksum_of(
        row.generation, row.checkpoint_offset, row.checkpoint_chain
    ):
        return CHECKPOINT_UNREADABLE
    chain_then = None
    if isinstance(watermark, CommitMark):
        chain_then = _chain_then(connection, row, watermark.offset)
    return judge_commit_mark(row, watermark, chain_then)


def _accept_loss(
    connection: sqlite3.Connection, row: ShardRow, watermark: CommitMark | Unreadable | None
) -> None:
    """Accepts the shard row as it is, after a loss was accepted; but raises its epoch and id
    ceiling so that none that may have been given out is given again."""
    checksum = checkpoint_checksum_of(row.generation, row.checkpoint_offset, row.checkpoint_chain)
    connection.execute(_SQL["accept_checkpoint"], {"shard": row.shard, "checksum": checksum})
    if isinstance(watermark, CommitMark):
        changed = {
            "shard": row.shard,
            "epoch": watermark.epoch,
            "id_ceiling": watermark.id_ceiling,
        }
        connection.execute(_SQL["accept_promise"], changed)


def take_shard(
    connection: sqlite3.Connection, shard: int, epoch_floor: int, id_block: int
) -> ShardRow:
    """Raises the epoch and the id ceiling in one transaction, and returns the row."""

    def raise_epoch() -> ShardRow:
        connection.execute(
            _SQL["raise_epoch"], {"shard": shard, "epoch_floor": epoch_floor, "id_block": id_block}
        )
        return shard_row(connection, shard)

    return transact(connection, raise_epoch)


def cut_where_it_breaks(connection: sqlite3.Connection, shard: int, losses: Losses) -> int:
    """Cuts a journal at its first break, after a loss was accepted: verifies all of it, sets apart
    the rows behind the break, and moves the shard row to the last good one. Returns the number of
    rows set apart."""
    row = shard_row(connection, shard)
    check = JournalCheck(row)
    case = check.begin()
    last = replace(row, offset=journal.OFFSET_MAX)
    while case is None:
        rows = journal.read_page(connection, last, check.offset)
        if not rows:
            break
        _, case = check.take(rows)
    case = case or check.finish()
    if case.decision is Decision.GO_ON:
        return 0
    losses.meet(f"shard {shard} after offset {check.offset}: {case}")
    return transact(
        connection, lambda: journal.cut(connection, shard, check.offset, check.chain, case.number)
    )


def loss_of(shard: int, check: JournalCheck, case: RecoveryCase) -> DataLoss:
    """Returns what `journal` raises at a break."""
    return DataLoss(
        f"shard {shard} after offset {check.offset}: {case}; {WAY_OUT}", case=case.number
    )


def _chain_then(connection: sqlite3.Connection, row: ShardRow, offset: int) -> int | None:
    if offset == row.offset:
        return row.chain
    if offset == row.checkpoint_offset:
        return row.checkpoint_chain
    return journal.chain_at(connection, row.shard, offset)
