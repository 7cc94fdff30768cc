"""Opening: making or checking the file, comparing it with the promise, taking a shard.

Functions of a connection, run on its thread. Nothing is changed before everything was compared.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from jobline_server.storage.recovery_cases import (
    Decision,
    JournalCheck,
    Promise,
    RecoveryCase,
    judge_promise,
)
from jobline_server.storage.sqlite import journal
from jobline_server.storage.sqlite.failures import autocommit, transact
from jobline_server.storage.sqlite.items import shard_row
from jobline_server.storage.sqlite.promise import PromiseFile
from jobline_server.storage.sqlite.statements import load, script
from jobline_server.storage.store import (
    CommitRefused,
    CommitUnknown,
    DataLoss,
    ShardRow,
    StoreRefused,
)

FORMAT = 1
APPLICATION_ID = 0x4A424C4E  # "JBLN"
SHARDS_DEFAULT = 8
SHARDS_MAX = 1_024

_SQL = load("items.sql")
_WAY_OUT = "to go on without what is lost, start once with accept_loss"


def prepare(connection: sqlite3.Connection, shards: int) -> int:
    """Makes the tables in a new file or checks those of an old one; the number of shards."""
    if not 0 <= shards <= SHARDS_MAX:
        raise StoreRefused(f"{shards} shards asked for; a store has 1 to {SHARDS_MAX}")
    if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0:
        create(connection, "schema.sql", {"shards": str(shards or SHARDS_DEFAULT)})
    check_format(connection, "jobline.db", APPLICATION_ID, FORMAT)
    found = int(connection.execute("SELECT shards FROM store").fetchone()[0])
    if shards not in (0, found):
        raise StoreRefused(
            f"the store was made with {found} shards and {shards} are asked for; the number is "
            "fixed, because it decides where each queue lives"
        )
    return found


def create(connection: sqlite3.Connection, name: str, values: dict[str, str]) -> None:
    """Runs a schema script, which is one transaction."""
    text = script(name)
    for field, value in values.items():
        text = text.replace("{" + field + "}", value)
    try:
        autocommit(connection, lambda: connection.executescript(text))
    except (CommitRefused, CommitUnknown) as failure:
        raise StoreRefused(f"the store could not be made: {failure}") from failure


def check_format(
    connection: sqlite3.Connection, name: str, application_id: int, version: int
) -> None:
    """Refuses a file that is not ours or not of our format."""
    found_id = connection.execute("PRAGMA application_id").fetchone()[0]
    found_version = connection.execute("PRAGMA user_version").fetchone()[0]
    if found_id != application_id:
        raise StoreRefused(f"{name} is a database of something else (application id {found_id:#x})")
    if found_version != version:
        raise StoreRefused(
            f"{name} has format {found_version}; this version reads format {version}"
        )


def compare_with_promises(
    connection: sqlite3.Connection, promises: PromiseFile, *, accept_loss: bool
) -> None:
    """Refuses a store that lost what was promised, or accepts the loss for good."""
    for found in connection.execute(_SQL["all_shard_rows"]).fetchall():
        row = ShardRow(*found)
        promise = promises.read(row.shard)
        chain_then = (
            _chain_then(connection, row, promise.offset) if isinstance(promise, Promise) else None
        )
        case = judge_promise(row, promise, chain_then)
        if case.decision is Decision.GO_ON:
            continue
        if not accept_loss:
            promised = (
                f"; promised was offset {promise.offset}" if isinstance(promise, Promise) else ""
            )
            raise StoreRefused(
                f"shard {row.shard} at offset {row.offset}: {case}{promised}; {_WAY_OUT}"
            )
        if isinstance(promise, Promise):
            _skip_past(connection, row.shard, promise)
        promises.renew(row.shard)


def take_shard(
    connection: sqlite3.Connection, shard: int, epoch_floor: int, id_block: int
) -> ShardRow:
    """Raises epoch and id ceiling in one transaction."""

    def raise_epoch() -> ShardRow:
        connection.execute(
            _SQL["raise_epoch"], {"shard": shard, "epoch_floor": epoch_floor, "id_block": id_block}
        )
        return shard_row(connection, shard)

    return transact(connection, raise_epoch)


def cut_where_it_breaks(connection: sqlite3.Connection, shard: int) -> int:
    """After a loss was accepted: verifies the whole journal of a shard, sets apart what comes after
    a break, and puts the shard row where the journal is good. Returns the rows set apart."""
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
    return transact(
        connection, lambda: journal.cut(connection, shard, check.offset, check.chain, case.number)
    )


def loss_of(shard: int, check: JournalCheck, case: RecoveryCase) -> DataLoss:
    """What `journal` raises where a journal breaks."""
    return DataLoss(
        f"shard {shard} after offset {check.offset}: {case}; {_WAY_OUT}", case=case.number
    )


def _chain_then(connection: sqlite3.Connection, row: ShardRow, offset: int) -> int | None:
    if offset == row.offset:
        return row.chain
    if offset == row.checkpoint_offset:
        return row.checkpoint_chain
    return journal.chain_at(connection, row.shard, offset)


def _skip_past(connection: sqlite3.Connection, shard: int, promise: Promise) -> None:
    changed = {"shard": shard, "epoch": promise.epoch, "id_ceiling": promise.id_ceiling}
    transact(connection, lambda: connection.execute(_SQL["accept_promise"], changed))
