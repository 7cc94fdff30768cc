"""What an SQLite error means for a write: definite, unknown or fenced. Every write passes here."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from jobline_server.storage.store import CommitRefused, CommitUnknown, DiskFull, Fenced

T = TypeVar("T")

# Extended codes (https://sqlite.org/rescode.html) carry the primary one in their low byte.
_PRIMARY = 0xFF
_FENCED = "fenced"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
# Where SQLite found no room for a page, there is none for so much.
_PROBE_BYTES = 1 << 16


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


def in_transaction(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    """As `transact`, for a function of the connection."""
    return transact(connection, lambda: work(connection))


def _meaning_of(
    connection: sqlite3.Connection, error: sqlite3.Error
) -> CommitRefused | CommitUnknown | Fenced:
    """Only two errors are known to leave nothing behind: a full disk, or quota, and our own fence.
    For both SQLite undoes the statement or the transaction; that it did is checked, not
    believed."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if connection.in_transaction and not _roll_back(connection):
        return CommitUnknown(f"a write failed and could not be undone: {error}")
    if code & _PRIMARY == sqlite3.SQLITE_FULL or (
        code == sqlite3.SQLITE_IOERR_WRITE and _has_no_room(connection)
    ):
        return DiskFull("the disk is full; nothing was written")
    if code == sqlite3.SQLITE_CONSTRAINT_TRIGGER and str(error) == _FENCED:
        # The trigger cannot say which row it was; `journal.append` looks.
        return Fenced("a shard row is elsewhere")
    return CommitUnknown(f"a write failed and may or may not be on disk: {error}")


def _has_no_room(connection: sqlite3.Connection) -> bool:
    """Whether a write failed because a quota is used up. SQLite calls that an I/O error, as it
    knows ENOSPC alone, and does not tell the system's reason through Python; a file beside the
    database does."""
    probe = Path(connection.execute("PRAGMA database_list").fetchone()[2] + ".probe")
    try:
        probe.write_bytes(bytes(_PROBE_BYTES))
    except OSError as error:
        return error.errno in NO_ROOM
    else:
        return False
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)


def _roll_back(connection: sqlite3.Connection) -> bool:
    """Ends a transaction that failed; False if that cannot be done."""
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error:
        return False
    return not connection.in_transaction
