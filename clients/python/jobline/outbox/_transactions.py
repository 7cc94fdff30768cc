"""Transactions of different libraries, behind one interface.

Statements are written with `?` for each parameter. What a library is, is read from the modules of
its classes, so that none of them is imported here.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from jobline.errors import InvalidArgument

Rows = list[tuple[Any, ...]]

SQLITE, POSTGRESQL = "sqlite", "postgresql"


class Transaction(ABC):
    """A connection or session of the user's. `dialect`: "sqlite", "postgresql" or another name."""

    dialect: str

    @abstractmethod
    def execute(self, statement: str, *parameters: Any) -> int:
        """Runs a statement; returns how many rows it has changed."""

    @abstractmethod
    def rows(self, statement: str, *parameters: Any) -> Rows:
        """Returns the rows of a query."""

    def refuse_autocommit(self, what: str) -> None:
        """Raises InvalidArgument if each statement would be a transaction of its own."""
        if self.commits_each:
            raise InvalidArgument(
                f"{what} belongs into a transaction, and none is open on this connection, which "
                "commits each statement by itself"
            )

    @property
    def commits_each(self) -> bool:
        """Whether no transaction is open and none begins by itself."""
        return False

    @abstractmethod
    def commit(self) -> None:
        """Commits."""

    @abstractmethod
    def rollback(self) -> None:
        """Rolls back."""


class _DbApi(Transaction):
    """A connection by DB-API 2.0 (PEP 249)."""

    def __init__(self, connection: Any, dialect: str, *, has_question_marks: bool) -> None:
        self._connection = connection
        self.dialect = dialect
        self._has_question_marks = has_question_marks

    def execute(self, statement: str, *parameters: Any) -> int:
        cursor = self._run(statement, parameters)
        try:
            return int(cursor.rowcount)
        finally:
            cursor.close()

    def rows(self, statement: str, *parameters: Any) -> Rows:
        cursor = self._run(statement, parameters)
        try:
            return [tuple(row) for row in cursor.fetchall()]
        finally:
            cursor.close()

    def _run(self, statement: str, parameters: Sequence[Any]) -> Any:
        cursor = self._cursor()
        text = statement if self._has_question_marks else statement.replace("?", "%s")
        cursor.execute(text, tuple(parameters))
        return cursor

    def _cursor(self) -> Any:
        return self._connection.cursor()

    def commit(self) -> None:
        self._connection.commit()

    def rollback(self) -> None:
        self._connection.rollback()


class _Sqlite(_DbApi):
    def _cursor(self) -> Any:
        cursor = self._connection.cursor()
        cursor.row_factory = None  # the connection may make dicts of rows
        return cursor

    @property
    def commits_each(self) -> bool:
        connection = self._connection
        # `autocommit` is there from Python 3.12 on, and -1 where `isolation_level` decides.
        mode = getattr(connection, "autocommit", -1)
        by_itself = connection.isolation_level is None if mode == -1 else bool(mode)
        return by_itself and not connection.in_transaction


class _Psycopg(_DbApi):
    def _cursor(self) -> Any:
        rows = sys.modules["psycopg.rows"]
        return self._connection.cursor(row_factory=rows.tuple_row)

    @property
    def commits_each(self) -> bool:
        idle = 0  # libpq's PQTRANS_IDLE
        return bool(self._connection.autocommit) and (
            int(self._connection.info.transaction_status) == idle
        )


class _Django(_DbApi):
    @property
    def commits_each(self) -> bool:
        return bool(self._connection.get_autocommit()) and not self._connection.in_atomic_block

    def commit(self) -> None:
        if not self._connection.in_atomic_block:
            self._connection.commit()

    def rollback(self) -> None:
        if not self._connection.in_atomic_block:
            self._connection.rollback()


class _SqlAlchemy(Transaction):
    """A Connection or Session, which begins a transaction by itself."""

    def __init__(self, tx: Any) -> None:
        self._tx = tx
        self._text = sys.modules["sqlalchemy"].text
        bind = tx.get_bind() if hasattr(tx, "get_bind") else tx
        self.dialect = str(bind.dialect.name)

    def execute(self, statement: str, *parameters: Any) -> int:
        result = self._run(statement, parameters)
        changed = int(result.rowcount)
        result.close()
        return changed

    def rows(self, statement: str, *parameters: Any) -> Rows:
        return [tuple(row) for row in self._run(statement, parameters)]

    def _run(self, statement: str, parameters: Sequence[Any]) -> Any:
        first, *others = statement.split("?")
        text = first + "".join(f":p{number}{part}" for number, part in enumerate(others))
        values = {f"p{number}": value for number, value in enumerate(parameters)}
        return self._tx.execute(self._text(text), values)

    def commit(self) -> None:
        self._tx.commit()

    def rollback(self) -> None:
        self._tx.rollback()


def transaction_of(tx: Any) -> Transaction:
    """Returns a transaction as this package uses it. Raises InvalidArgument for one of an async
    library, or of a library that is not known.
    """
    if isinstance(tx, Transaction):
        return tx
    modules = [kind.__module__ for kind in type(tx).__mro__]
    _refuse_async(tx)
    roots = {module.partition(".")[0] for module in modules}
    if "sqlalchemy" in roots:
        return _SqlAlchemy(tx)
    if "django" in roots:
        return _Django(tx, str(tx.vendor), has_question_marks=False)
    connection = tx if hasattr(tx, "cursor") else getattr(tx, "connection", None)
    if connection is None:
        raise InvalidArgument(
            f"tx: must be a connection of a database, or a session of SQLAlchemy, not {tx!r}"
        )
    if "sqlite3" in roots or "sqlite3" in {kind.__module__ for kind in type(connection).__mro__}:
        return _Sqlite(connection, SQLITE, has_question_marks=True)
    if "psycopg" in roots:
        return _Psycopg(connection, POSTGRESQL, has_question_marks=False)
    return _other(connection)


def _other(connection: Any) -> Transaction:
    """Returns a connection of a driver that follows DB-API."""
    name = type(connection).__module__.partition(".")[0]
    style = getattr(sys.modules.get(name), "paramstyle", "")
    if style not in {"qmark", "format", "pyformat"}:
        raise InvalidArgument(f"tx: {name} is no driver that is known here: {connection!r}")
    dialect = POSTGRESQL if name in {"psycopg2", "pg8000"} else name
    return _DbApi(connection, dialect, has_question_marks=style == "qmark")


def _refuse_async(tx: Any) -> None:
    name = type(tx).__name__
    if name.startswith(("Async", "async_")) or "aio" in type(tx).__module__.partition(".")[0]:
        raise InvalidArgument(
            f"tx: {name} is awaited: with SQLAlchemy `await session.run_sync(lambda tx: …)`, with "
            "other libraries `await tx.execute(*outbox.statement(…))`"
        )
