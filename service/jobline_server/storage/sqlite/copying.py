"""Copies of the files of a directory, while they are in use: see `storage/copies.py`."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from jobline_server.storage.copies import CopyFailed
from jobline_server.storage.sqlite import belonging
from jobline_server.storage.sqlite.bootstrap import DATABASE_FILE
from jobline_server.storage.sqlite.connection import Database
from jobline_server.storage.sqlite.ended_store import FINISHED_FILE
from jobline_server.storage.sqlite.files import free_bytes, sync_file
from jobline_server.storage.sqlite.live_copy import STEP_PAGES
from jobline_server.storage.sqlite.pages import SQLITE_PAGE_BYTES


class DirectoryCopies:
    """Copies both databases of a directory. `databases` returns them, opened: jobline.db first."""

    def __init__(self, directory: Path, databases: Callable[[], tuple[Database, Database]]) -> None:
        self._directory = directory
        self._databases = databases

    async def identity(self) -> int:
        """See `StoreCopies.identity`."""
        store, _ = self._databases()
        return (await store.run(belonging.note_of))[0]

    def free_bytes(self) -> int:
        """See `StoreCopies.free_bytes`."""
        return free_bytes(self._directory)

    async def begin(self, directory: Path) -> DirectoryCopy:
        """See `StoreCopies.begin`."""
        store, ended = self._databases()
        try:
            return await DirectoryCopy.begun(
                [(ended, directory / FINISHED_FILE), (store, directory / DATABASE_FILE)]
            )
        except RuntimeError as error:
            raise CopyFailed(str(error)) from error


class _Part:
    """One of the databases, and how many of its pages are left."""

    def __init__(self, database: Database, file: Path) -> None:
        self.file = file
        self._database = database
        self._copy = database.begin_copy(file)
        self._copied = 0
        self.pages = 0
        self.left = 1

    async def step(self) -> None:
        """Copies some pages."""
        self.left = await self._copy.step()
        self.pages = self._copy.pages
        self._copied = self.pages - self.left

    async def look(self) -> None:
        """Sees by how much the database has grown."""
        self.pages = await self._database.run(_page_count)
        self.left = max(self.pages - self._copied, 1)

    async def abandon(self) -> None:
        """Gives the copy up."""
        await self._copy.abandon()


class DirectoryCopy:
    """A copy under way. finished.db is finished first: then all that ended until then is in its
    copy, and what ends before jobline.db is finished is in the journal of that. The other way round
    a job could be in both.
    """

    def __init__(self, parts: list[_Part]) -> None:
        self._parts = parts

    @classmethod
    async def begun(cls, files: list[tuple[Database, Path]]) -> DirectoryCopy:
        """Begins all parts."""
        parts: list[_Part] = []
        copy = cls(parts)
        try:
            for database, file in files:
                # As private as what it is a copy of.
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
                parts.append(_Part(database, file))
                await parts[-1].look()
        except OSError as error:
            await copy.abandon()
            raise CopyFailed(str(error)) from error
        except BaseException:
            await copy.abandon()
            raise
        return copy

    @property
    def total_bytes(self) -> int:
        """See `StoreCopy.total_bytes`."""
        return sum(part.pages for part in self._parts) * SQLITE_PAGE_BYTES

    async def step(self) -> int:
        """See `StoreCopy.step`."""
        most = max(self._parts, key=lambda part: part.left)
        if most.left > STEP_PAGES:
            await most.step()
        if self.is_close():
            for part in self._parts:
                if part.left:
                    await part.look()
        return sum(part.left for part in self._parts) * SQLITE_PAGE_BYTES

    def is_close(self) -> bool:
        """See `StoreCopy.is_close`."""
        return all(part.left <= STEP_PAGES for part in self._parts)

    async def finish(self) -> None:
        """See `StoreCopy.finish`."""
        *others, last = self._parts
        if not last.left:
            # Pages were given back, and its last step took more than it was to.
            raise CopyFailed(f"{last.file.name} became smaller meanwhile")
        for part in (*others, last):
            while part.left:
                await part.step()

    async def abandon(self) -> None:
        """See `StoreCopy.abandon`."""
        for part in self._parts:
            await part.abandon()

    async def make_durable(self) -> None:
        """See `StoreCopy.make_durable`."""
        for part in self._parts:
            try:
                await asyncio.to_thread(sync_file, part.file)
            except OSError as error:
                raise CopyFailed(f"{part.file.name}: {error}") from error


def _page_count(raw: sqlite3.Connection) -> int:
    return int(raw.execute("PRAGMA page_count").fetchone()[0])
