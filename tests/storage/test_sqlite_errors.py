"""Writes that fail other than for a full disk: nobody knows what is there, and nothing more is
written."""

from __future__ import annotations

import resource
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from jobline_server.storage.sqlite.connection import DatabaseSettings
from jobline_server.storage.sqlite.failures import autocommit, transact
from jobline_server.storage.sqlite.store import SqliteSettings, SqliteStore
from jobline_server.storage.store import CommitUnknown, Fenced, JournalRow
from tests.storage.rows import blobs_of, checkpoint, job, opened
from tests.storage.sqlite_stores import SMALL, Make

MIB = 1 << 20


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Writes beyond this size fail with EFBIG: an error of the disk that SQLite has no name for."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def size_of(file: Path) -> int:
    return file.stat().st_size


async def test_write_error_is_unknown_and_nothing_is_written_after_it(
    tmp_path: Path, make: Make
) -> None:
    store = make(SMALL)
    writer = await opened(store)
    await store.commit([writer.row(b"a")])
    wal = size_of(tmp_path / "jobline.db-wal")
    unknown = writer.row(b"b" * 100_000)
    with file_size_limit(wal + 20_000), pytest.raises(CommitUnknown, match="may or may not"):
        await store.commit([unknown])
    for write in (
        store.commit([unknown]),
        store.stage(0, writer.epoch, 1, [job(1)], []),
        store.truncate(0, 10),
        store.open_shard(1, 0, 1),
    ):
        with pytest.raises(CommitUnknown, match="nothing more is written"):
            await write
    await store.close()
    store = make(SMALL)
    await opened(store)
    assert await blobs_of(store) in ([b"a"], [b"a", unknown.blob])


class Faulty(sqlite3.Connection):
    """Fails statements that begin with `begins`, once they were executed or instead."""

    begins = ""
    code = sqlite3.SQLITE_IOERR_FSYNC
    executed = False

    def execute(self, sql: str, *parameters: object) -> sqlite3.Cursor:
        if not self.begins or not sql.startswith(self.begins):
            return super().execute(sql, *parameters)  # type: ignore[arg-type]
        if self.executed:
            super().execute(sql, *parameters)  # type: ignore[arg-type]
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = self.code
        raise error


@pytest.fixture
def faulty() -> type[Faulty]:
    """A class of its own for each test, so that its faults end with it."""
    return type("FaultyHere", (Faulty,), {})


def settings_with(faulty: type[Faulty], wal_bytes: int = 8 * MIB) -> SqliteSettings:
    return replace(SMALL, database=DatabaseSettings(factory=faulty, wal_bytes=wal_bytes))


@pytest.mark.parametrize("executed", [False, True])
async def test_failed_fsync_is_unknown_whether_or_not_the_commit_is_there(
    tmp_path: Path, make: Make, faulty: type[Faulty], executed: bool
) -> None:
    store = make(settings_with(faulty))
    writer = await opened(store)
    await store.commit([writer.row(b"a")])
    faulty.begins, faulty.executed = "INSERT INTO journal", executed
    with pytest.raises(CommitUnknown):
        await store.commit([writer.row(b"b")])
    faulty.begins = ""
    await store.close()
    store = make(SMALL)
    await opened(store)
    assert await blobs_of(store) == ([b"a", b"b"] if executed else [b"a"])


@pytest.mark.parametrize("statement", ["COMMIT", "INSERT INTO item", "BEGIN", "UPDATE shard"])
async def test_failed_statement_of_a_checkpoint_is_unknown(
    tmp_path: Path, make: Make, faulty: type[Faulty], statement: str
) -> None:
    store = make(settings_with(faulty))
    writer = await opened(store)
    faulty.begins = statement
    with pytest.raises(CommitUnknown):
        await checkpoint(store, writer, [job(1)])
    faulty.begins = ""
    with pytest.raises(CommitUnknown):
        await store.commit([writer.row(b"b")])


async def test_error_while_pages_move_stops_the_next_commit(
    tmp_path: Path, make: Make, faulty: type[Faulty]
) -> None:
    store = make(settings_with(faulty, wal_bytes=1))
    writer = await opened(store)
    await settle(store)
    faulty.begins = "PRAGMA wal_checkpoint"
    await store.commit([writer.row(b"a")])
    await settle(store)
    with pytest.raises(CommitUnknown):
        await store.commit([writer.row(b"b")])


async def test_full_disk_while_pages_move_stops_nothing(
    tmp_path: Path, make: Make, faulty: type[Faulty]
) -> None:
    faulty.code = sqlite3.SQLITE_FULL
    store = make(settings_with(faulty, wal_bytes=1))
    writer = await opened(store)
    faulty.begins = "PRAGMA wal_checkpoint"
    for _ in range(3):
        await store.commit([writer.row(b"a")])
        await settle(store)
    assert len(await blobs_of(store)) == 3


async def settle(store: SqliteStore) -> None:
    """Waits until pages have moved, if they do."""
    if store.database._moving is not None:
        await store.database._moving


def test_full_disk_that_cannot_be_rolled_back_is_unknown() -> None:
    """`SQLITE_FULL` is definite only because SQLite undid it, and that is checked."""

    class Stuck(Faulty):
        begins = "ROLLBACK"

    connection = sqlite3.connect(":memory:", isolation_level=None, factory=Stuck)
    connection.execute("CREATE TABLE t (x)")

    def full() -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    with pytest.raises(CommitUnknown, match="could not be undone"):
        transact(connection, full)
    connection.close()


def test_mistake_in_a_transaction_undoes_it_and_passes_through() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)

    def mistaken() -> None:
        connection.execute("CREATE TABLE t (x)")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        transact(connection, mistaken)
    assert not connection.in_transaction
    assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
    connection.close()


def test_only_our_own_trigger_is_a_fence() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE t (x)")
    for message, meaning in (("fenced", Fenced), ("other", CommitUnknown)):
        connection.execute("DROP TRIGGER IF EXISTS r")
        connection.execute(
            f"CREATE TRIGGER r BEFORE INSERT ON t BEGIN SELECT RAISE(ABORT, '{message}'); END"
        )
        with pytest.raises(meaning):
            autocommit(connection, lambda: connection.execute("INSERT INTO t VALUES (1)"))
    connection.close()


async def test_row_that_does_not_fit_is_a_mistake_and_changes_nothing(
    tmp_path: Path, make: Make
) -> None:
    store = make(SMALL)
    writer = await opened(store)
    with pytest.raises(OverflowError):
        await store.commit([JournalRow(0, 1 << 70, 1, 0, 0, b"")])
    await store.commit([writer.row(b"a")])
    assert await blobs_of(store) == [b"a"]
