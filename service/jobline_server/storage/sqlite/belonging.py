"""Checks that the files of a directory belong together: jobline.db notes that there is a watermark
file and how far finished.db was synced, and both databases have the identity of their store.

Otherwise a file that was deleted, or replaced by an older copy or by that of another store, would
pass for a new one, and its contents would be lost in silence. Functions of a connection, except
`join`.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from jobline_server.storage.recovery_cases import (
    FINISHED_MISSING,
    FINISHED_OF_ANOTHER,
    FINISHED_OLDER,
    FINISHED_UNREADABLE,
    PROMISE_MISSING,
    RecoveryCase,
)
from jobline_server.storage.sqlite.connection import Database
from jobline_server.storage.sqlite.failures import transact
from jobline_server.storage.sqlite.losses import Losses
from jobline_server.storage.sqlite.pages import SQLITE_PAGE_BYTES
from jobline_server.storage.sqlite.statements import load
from jobline_server.storage.store import StoreRefused

_SQL = load("belonging.sql")
_PRIMARY = 0xFF
_UNREADABLE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@dataclass(frozen=True, slots=True)
class EndedMark:
    """The identity of the store that a finished.db belongs to, None for a new one, and how often
    the file was synced."""

    identity: int | None
    syncs: int


class EndedFile(Protocol):
    """What the store of a directory asks of the finished.db beside it."""

    async def mark(self) -> EndedMark:
        """Returns the store it belongs to, and how often it was synced."""

    async def belong_to(self, identity: int) -> None:
        """Makes it that of a store, durably."""


def check_watermark(connection: sqlite3.Connection, file: Path, losses: Losses) -> None:
    """Refuses a store whose watermark file is missing."""
    _, promised, _ = note_of(connection)
    if promised and not file.exists():
        losses.meet(f"{file.name}: {PROMISE_MISSING}")


def note_watermark(connection: sqlite3.Connection) -> None:
    """Notes that there is a watermark file."""
    transact(connection, partial(connection.execute, _SQL["note_promise"]))


def note_ended(connection: sqlite3.Connection, syncs: int) -> None:
    """Notes how far finished.db was synced before this checkpoint. Part of a transaction."""
    connection.execute(_SQL["note_ended"], {"syncs": syncs})


def note_of(connection: sqlite3.Connection) -> tuple[int, bool, int | None]:
    """Returns what a store notes: its identity, whether there is a watermark file, and how often
    its finished.db had been synced, None before the first time."""
    identity, promised, ended_syncs = connection.execute(_SQL["note"]).fetchone()
    return identity, bool(promised), ended_syncs


def mark(connection: sqlite3.Connection) -> EndedMark:
    """Returns the mark of a finished.db."""
    return EndedMark(*connection.execute(_SQL["mark"]).fetchone())


def belong_to(connection: sqlite3.Connection, identity: int) -> None:
    """Writes the identity of the store into finished.db. Part of a transaction."""
    connection.execute(_SQL["belong_to"], {"identity": identity})


async def join(database: Database, ended_file: EndedFile, losses: Losses) -> None:
    """Refuses a finished.db that is not the one that the store had, or takes a new one."""
    identity, _, ended_syncs = await database.run(note_of)
    found = await ended_file.mark()
    case = case_of(identity, ended_syncs, found)
    if case is not None:
        losses.meet(f"finished.db: {case}")
    if found.identity != identity:
        await ended_file.belong_to(identity)
        found = await ended_file.mark()
    if case is not None or ended_syncs is None:
        await database.transact(partial(note_ended, syncs=found.syncs), SQLITE_PAGE_BYTES)


def case_of(identity: int, ended_syncs: int | None, found: EndedMark) -> RecoveryCase | None:
    """Returns what is wrong with a finished.db, by what the store notes of its own, or None."""
    if found.identity not in (None, identity):
        return FINISHED_OF_ANOTHER
    if ended_syncs is None:
        return None
    if found.identity is None:
        return FINISHED_MISSING
    return FINISHED_OLDER if found.syncs < ended_syncs else None


def put_aside(file: Path, refusal: StoreRefused, losses: Losses) -> None:
    """Renames a finished.db that cannot be read if its loss was accepted; else raises the
    refusal."""
    code = getattr(refusal.__cause__, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if code & _PRIMARY not in _UNREADABLE:
        raise refusal
    losses.meet(f"{refusal}: {FINISHED_UNREADABLE}")
    for suffix in ("", "-wal"):
        part = file.with_name(file.name + suffix)
        if part.exists():
            part.rename(file.with_name(f"{file.name}{suffix}.lost"))
