"""`Database`: one database file, one connection, one thread.

aiosqlite runs what it is given on its thread, one after another. So a transaction is a plain
function of the connection: it runs there from begin to end, nothing comes between its statements,
and it costs one hop from the loop. If the task that waits for it is cancelled, it still runs to its
end.

After a write with an unknown outcome the database refuses all writes: memory and disk may differ
from then on.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar, cast

import aiosqlite

from jobline_server.storage.sqlite import pages
from jobline_server.storage.sqlite.failures import autocommit, transact
from jobline_server.storage.sqlite.files import free_bytes
from jobline_server.storage.sqlite.live_copy import LiveCopy
from jobline_server.storage.sqlite.pages import SQLITE_PAGE_BYTES
from jobline_server.storage.sqlite.statements import load
from jobline_server.storage.store import CommitUnknown, DataLoss, DiskFull, StoreRefused

T = TypeVar("T")

# The WAL is checkpointed after this much was written. Measured with blobs of 100 KB: 4, 16 and 64
# MiB give the same throughput, and commits wait up to 20, 45 and 200 ms for the checkpoint.
WAL_BYTES_DEFAULT = 8 << 20
CACHE_BYTES_DEFAULT = 32 << 20
# Free pages per slice of `shrink`: 2 MiB, a few milliseconds, and at most as much of the WAL.
SHRUNK_PAGES = 256
# SQLite checkpoints by itself once the WAL is this large: several times what it should be.
_BACKSTOP_BYTES = 64 << 20
# What reading a damaged file can raise: SQLite checks structure, not values. Text, and an error
# message that quotes it, may not be UTF-8 any more, and a number may be NULL.
_UNREADABLE = (sqlite3.Error, UnicodeDecodeError, TypeError, struct.error)

_PRAGMAS = load("pragmas.sql")
_FIXED_WHEN_MADE = {"page_size", "auto_vacuum"}


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """How a file is opened. `synchronous` is FULL (each commit fsyncs) or NORMAL (only checkpoints
    do)."""

    synchronous: str = "FULL"
    wal_bytes: int = WAL_BYTES_DEFAULT
    cache_bytes: int = CACHE_BYTES_DEFAULT
    factory: type[sqlite3.Connection] = sqlite3.Connection


class _OneHop(Protocol):
    """The one private method of aiosqlite that is used. Its public methods run one statement per
    hop, so that another task's statement may come between two of a transaction."""

    def _execute(self, work: Callable[[], T]) -> Awaitable[T]: ...


class Database:
    """An open file. Made by `open`."""

    def __init__(
        self,
        file: Path,
        connection: aiosqlite.Connection,
        raw: sqlite3.Connection,
        settings: DatabaseSettings,
    ) -> None:
        self._file = file
        self._connection = connection
        self._raw = raw
        self._wal_bytes_max = settings.wal_bytes
        self._wal_bytes = 0
        self._moving: asyncio.Task[None] | None = None
        self._copy: LiveCopy | None = None
        self._broken: CommitUnknown | None = None
        self.on_full: Callable[[], None] = lambda: None
        """Called on the thread when the database has no room for what the WAL holds."""

    @classmethod
    async def open(cls, file: Path, settings: DatabaseSettings) -> Database:
        """Opens or makes the file and applies every PRAGMA, or raises `StoreRefused`."""
        opened: list[sqlite3.Connection] = []
        found = [False]

        def connect() -> sqlite3.Connection:
            found[0] = file.exists() and file.stat().st_size > 0
            if not file.exists():
                # SQLite would make it readable for all; files beside it get the same mode.
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            connection = sqlite3.connect(
                file,
                timeout=0,
                isolation_level=None,
                cached_statements=256,
                factory=settings.factory,
            )
            opened.append(connection)
            return connection

        connection = aiosqlite.Connection(connect, iter_chunk_size=64)
        try:
            await connection
        except (sqlite3.Error, OSError) as error:
            # Its thread notifies the loop as it ends, and the loop may be closed soon.
            await asyncio.to_thread(connection._thread.join)  # noqa: SLF001  # nothing public waits
            if isinstance(error, OSError):
                raise
            raise StoreRefused(f"{file.name} cannot be opened: {error}") from error
        database = cls(file, connection, opened[0], settings)
        try:
            await database.run(
                lambda raw: _apply_pragmas(raw, file.name, settings, is_new=not found[0])
            )
        except BaseException:
            await database.close()
            raise
        return database

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Runs a read. Raises `DataLoss` for what cannot be read."""
        try:
            return await self._on_thread(work)
        except _UNREADABLE as error:
            raise DataLoss(f"the database cannot be read: {error}") from error

    async def write(self, work: Callable[[sqlite3.Connection], T], wal_bytes: int) -> T:
        """Runs a transaction that writes about `wal_bytes`. `work` translates its own errors."""

        def guarded(raw: sqlite3.Connection) -> T:
            # On the thread, so that it also holds for writes in its queue, and for those whose
            # caller was cancelled.
            if self._broken is not None:
                raise CommitUnknown(
                    "an earlier write may be lost; nothing more is written"
                ) from self._broken
            try:
                return work(raw)
            except CommitUnknown as unknown:
                self._broken = unknown
                raise

        outcome = await self._on_thread(guarded)
        self._wal_bytes += wal_bytes
        if self._wal_bytes >= self._wal_bytes_max and self._moving is None:
            self._wal_bytes = 0
            self._moving = asyncio.create_task(self._move_in_background())
        return outcome

    async def transact(self, work: Callable[[sqlite3.Connection], T], wal_bytes: int) -> T:
        """Runs statements as one transaction that writes about `wal_bytes`."""
        return await self.write(lambda raw: transact(raw, lambda: work(raw)), wal_bytes)

    async def wait_moved(self) -> None:
        """Waits for the pages that move to the database just now, if any do."""
        if self._moving is not None:
            await asyncio.shield(self._moving)

    async def shrink(self, pages_max: int) -> int:
        """Returns up to `pages_max` free pages to the file system; returns how many. Raises
        `DiskFull`: pages that are moved go through the WAL. A file that was made without
        auto_vacuum keeps its pages."""

        def shrink(raw: sqlite3.Connection) -> int:
            before = pages.free_pages(raw)
            if before:
                pages.vacuum(raw, pages_max)
            return before - pages.free_pages(raw)

        given = await self.write(shrink, 0)
        if given:
            await self.empty_wal()
        return given

    async def empty_wal(self) -> None:
        """Moves the WAL to the database and returns its room to the file system, if there is room
        for what the database grows by. Needs none where it does not grow."""
        await self._on_thread(self.empty_wal_here)

    def empty_wal_here(self, raw: sqlite3.Connection) -> None:
        """As `empty_wal`, for work that is on the thread, between two transactions."""
        self._move_wal(raw, "TRUNCATE")

    async def growth(self, size_bytes: int) -> int:
        """Returns by how much the file will grow when its WAL is moved, after `size_bytes` more."""
        return await self._on_thread(lambda raw: pages.growth(raw, self._file, size_bytes))

    def begin_copy(self, file: Path) -> LiveCopy:
        """Begins a copy of the database, which goes on in its steps; one at a time."""
        if self._copy is not None:
            raise RuntimeError("there is a copy under way")
        copy = self._copy = LiveCopy(file, self._forget_copy)
        copy.start(self._hop(lambda: copy.make(self._raw)))
        return copy

    def _forget_copy(self) -> None:
        self._copy = None

    async def close(self) -> None:
        """Waits for the work in progress and closes the file; SQLite checkpoints and deletes the
        WAL. A copy under way is given up."""
        if self._copy is not None:
            await self._copy.abandon()
        if self._moving is not None:
            await self._moving
        await self._connection.close()

    async def _on_thread(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._copy is not None:
            return await self._copy.run(lambda: work(self._raw))
        return await self._hop(lambda: work(self._raw))

    def _hop(self, work: Callable[[], T]) -> Awaitable[T]:
        return cast(_OneHop, self._connection)._execute(work)  # noqa: SLF001  # see _OneHop

    async def _move_in_background(self) -> None:
        try:
            await self._on_thread(lambda raw: self._move_wal(raw, "PASSIVE"))
        finally:
            self._moving = None

    def _move_wal(self, raw: sqlite3.Connection, mode: str) -> None:
        """Runs SQLite's own checkpoint, between two commits rather than inside one: the callers of
        the last commit are answered meanwhile. A full disk only means that the WAL grows on; it is
        tried again. Where the file would grow by more than there is room for, nothing is moved: the
        attempt would take what room there is, and gain none."""
        try:
            growth = pages.growth(raw, self._file, 0)
            if growth and growth > free_bytes(self._file.parent):
                self.on_full()
            else:
                autocommit(raw, lambda: raw.execute(f"PRAGMA wal_checkpoint({mode})").fetchall())
        except DiskFull:
            self.on_full()
        except CommitUnknown as unknown:
            self._broken = unknown


def _apply_pragmas(
    raw: sqlite3.Connection, name: str, settings: DatabaseSettings, *, is_new: bool
) -> None:
    values = {
        "synchronous": settings.synchronous,
        "backstop_pages": _BACKSTOP_BYTES // SQLITE_PAGE_BYTES,
        "cache_size": -settings.cache_bytes // 1_024,
    }
    try:
        for pragma, statement in _PRAGMAS.items():
            if pragma in _FIXED_WHEN_MADE and not is_new:
                # Nothing is written to a file before it was compared; SQLite would write this.
                continue
            wanted = statement.format_map(values)
            raw.execute(wanted).fetchall()
            if pragma == "journal_mode":
                # Takes the lock, reads the WAL and fixes the page size: what follows is true of
                # this file.
                raw.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        for pragma, statement in _PRAGMAS.items():
            _compare(raw, name, pragma, statement.format_map(values).split("=")[1].strip())
    except _UNREADABLE as error:
        raise StoreRefused(f"{name} cannot be opened: {error}") from error


def _compare(raw: sqlite3.Connection, name: str, pragma: str, wanted: str) -> None:
    found = str(raw.execute(f"PRAGMA {pragma}").fetchone()[0])
    same = {"FULL": "2", "NORMAL": "1", "OFF": "0", "ON": "1", "MEMORY": "2"}.get(wanted, wanted)
    if pragma not in _FIXED_WHEN_MADE and found.upper() != same.upper():
        raise StoreRefused(
            f"{name}: PRAGMA {pragma} is {found} and not {wanted}; the promises rest on it"
        )
