"""Translates SQLite errors of writes: definite, unknown or fenced. Every write goes through
here."""

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
# If SQLite found no room for a page, there is none for this much.
_PROBE_BYTES = 1 << 16


def autocommit(connection: sqlite3.Connection, work: Callable[[], T]) -> T:
    """Runs one statement as a transaction of its own."""
    try:
        return work()
    except sqlite3.Error as error:
        raise _meaning_of(connection, error) from error


def transact(connection: sqlite3.Connection, work: Callable[[], T]) -> T:
    """Runs statements as one transaction. An exception of `work` rolls it back and is raised."""
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
    """Runs a function of the connection as one transaction."""
    return transact(connection, lambda: work(connection))


def _meaning_of(
    connection: sqlite3.Connection, error: sqlite3.Error
) -> CommitRefused | CommitUnknown | Fenced:
    """Returns what an error means. Only two are known to leave nothing behind: a full disk or
    quota, and our own fence. For both SQLite rolls back the statement or the transaction, which is
    checked."""
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
    """Returns whether a write failed because a quota is used up. SQLite reports that as an I/O
    error (it knows only ENOSPC), without the system's reason; a write to a file beside the database
    has it."""
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
    """Rolls back a failed transaction; returns False if that fails."""
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error:
        return False
    return not connection.in_transaction
