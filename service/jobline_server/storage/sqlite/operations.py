"""`SqliteOperationStore`: what operators did, in finished.db and on its thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial

from jobline_server.engine.operations import OperationQuery
from jobline_server.storage.operations import FoundOperation
from jobline_server.storage.sqlite.minutes import OpenDatabase
from jobline_server.storage.sqlite.pages import SQLITE_PAGE_BYTES
from jobline_server.storage.sqlite.statements import load

_SQL = load("operations.sql")


class SqliteOperationStore:
    """Implements `OperationStore`; `database` returns that of the ended store once it is open."""

    def __init__(self, database: Callable[[], OpenDatabase]) -> None:
        self._database = database

    async def find(self, query: OperationQuery) -> Sequence[FoundOperation]:
        """See `OperationStore.find`."""
        return await self._database().run(partial(_find, query=query))

    async def delete_old(self, before_ms: int, kept_max: int, limit: int) -> int:
        """See `OperationStore.delete_old`."""
        values = {"before_ms": before_ms, "kept_max": kept_max, "limit": limit}
        work = partial(_delete_old, values=values)
        return await self._database().transact(work, limit * SQLITE_PAGE_BYTES)


def _find(connection: sqlite3.Connection, *, query: OperationQuery) -> Sequence[FoundOperation]:
    values = {
        "id": query.id,
        "principal": query.principal,
        "verb": query.verb,
        "queue": query.queue,
        "after_ms": query.after_ms,
        "before_ms": query.before_ms,
        "before": query.before,
        "limit": query.limit,
    }
    statement = _SQL["find_one" if query.id else "find"]
    return [FoundOperation._make(row) for row in connection.execute(statement, values)]


def _delete_old(connection: sqlite3.Connection, *, values: dict[str, int]) -> int:
    deleted = connection.execute(_SQL["delete_before"], values).rowcount
    return deleted + connection.execute(_SQL["delete_oldest"], values).rowcount
