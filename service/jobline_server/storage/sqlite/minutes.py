"""`SqliteMinuteStore`: the minutes of queues, in finished.db and on its thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from jobline_server.storage.sqlite.pages import SQLITE_PAGE_BYTES
from jobline_server.storage.sqlite.statements import load
from jobline_server.telemetry.queue_minutes import QueueMinute

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

_SQL = load("minutes.sql")
_ROW_BYTES = SQLITE_PAGE_BYTES // 8


class OpenDatabase(Protocol):
    """The open database of the ended store."""

    def run(self, work: Work[T]) -> Awaitable[T]:
        """See `Database.run`."""

    def transact(self, work: Work[T], wal_bytes: int) -> Awaitable[T]:
        """See `Database.transact`."""


class SqliteMinuteStore:
    """Implements `MinuteStore`; `database` returns that of the ended store once it is open."""

    def __init__(self, database: Callable[[], OpenDatabase]) -> None:
        self._database = database

    async def add(self, minutes: Sequence[QueueMinute]) -> None:
        """See `MinuteStore.add`."""
        await self._database().transact(partial(_add, minutes=minutes), len(minutes) * _ROW_BYTES)

    async def find(self, queue: str, first: int, last: int, limit: int) -> Sequence[QueueMinute]:
        """See `MinuteStore.find`."""
        values = {"queue": queue, "first": first, "last": last, "limit": limit}
        return await self._database().run(partial(_find, values=values))

    async def delete_before(self, minute: int, limit: int) -> int:
        """See `MinuteStore.delete_before`."""
        values = {"minute": minute, "limit": limit}
        work = partial(_delete_before, values=values)
        return await self._database().transact(work, limit * _ROW_BYTES)


def _add(connection: sqlite3.Connection, *, minutes: Sequence[QueueMinute]) -> None:
    connection.executemany(_SQL["add"], minutes)


def _find(connection: sqlite3.Connection, *, values: dict[str, object]) -> Sequence[QueueMinute]:
    return [QueueMinute._make(row) for row in connection.execute(_SQL["find"], values)]


def _delete_before(connection: sqlite3.Connection, *, values: dict[str, int]) -> int:
    return connection.execute(_SQL["delete_before"], values).rowcount
