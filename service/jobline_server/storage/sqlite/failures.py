"""What an SQLite error means for a write: definite, unknown or fenced. Every write passes here."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from jobline_server.storage.store import CommitRefused, CommitUnknown, DiskFull, Fenced

T = TypeVar("T")

# Extended codes (https://sqlite.org/rescode.html) carry the primary one in their low byte.
_PRIMARY = 0xFF
_FENCED = "fenced"


def autocommit(connection: sqlite3.Connection, work: Callable[[], T]) -> T:
    """Runs one statement that is a transaction by itself."""
    try:
        return work()
    except sqlite3.Error as error:
        raise _meaning_of(connection, error) from error


def transact(connection: sqlite3.Connection, work: Callable[[], T]) -> T:
    """Runs statements as one transaction. An exception of `work` itself undoes it and passes
    through."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        outcome = work()
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise _meaning_of(connection, error) from error
    except BaseException:
        _roll_back(connection)
        raise
    return outcome


def _meaning_of(
    connection: sqlite3.Connection, error: sqlite3.Error
) -> CommitRefused | CommitUnknown | Fenced:
    """Only two errors are known to leave nothing behind: a full disk, and our own fence. For both
    SQLite undoes the statement or the transaction; that it did is checked, not believed."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if connection.in_transaction and not _roll_back(connection):
        return CommitUnknown(f"a write failed and could not be undone: {error}")
    if code & _PRIMARY == sqlite3.SQLITE_FULL:
        return DiskFull("the disk is full; nothing was written")
    if code == sqlite3.SQLITE_CONSTRAINT_TRIGGER and str(error) == _FENCED:
        return Fenced("the shard row has another epoch, offset or chain than this commit continues")
    return CommitUnknown(f"a write failed and may or may not be on disk: {error}")


def _roll_back(connection: sqlite3.Connection) -> bool:
    """Ends a transaction that failed; False if that cannot be done."""
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error:
        return False
    return not connection.in_transaction
