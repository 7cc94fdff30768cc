"""The databases of users that the outbox is tested with: files of SQLite, and a real PostgreSQL."""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from jobline.outbox import Outbox, fence
from tests.postgresql import MISSING, postgresql, programs

_NUMBERS = itertools.count()
Kind = Literal["sqlite", "postgresql"]


@dataclass(frozen=True)
class Database:
    """A database of one test. `target`: a file, or what psycopg connects to."""

    kind: Kind
    target: str

    def connect(self) -> Any:
        """A new connection, usable by any thread."""
        if self.kind == "sqlite":
            return sqlite3.connect(self.target, timeout=30, check_same_thread=False)
        return pytest.importorskip("psycopg").connect(self.target)

    @property
    def url(self) -> str:
        """The same for SQLAlchemy."""
        if self.kind == "sqlite":
            return f"sqlite:///{self.target}"
        parts = dict(part.split("=") for part in self.target.split())
        return f"postgresql+psycopg://{parts['user']}@/{parts['dbname']}?host={parts['host']}"

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """A connection, committed at the end, or rolled back."""
        connection = self.connect()
        try:
            yield connection
            connection.commit()
        finally:
            connection.close()

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Rows, read in a transaction of its own."""
        with self.transaction() as connection:
            cursor = connection.cursor()
            cursor.execute(statement)
            return [tuple(row) for row in cursor.fetchall()]


@contextmanager
def cluster() -> Iterator[str]:
    """PostgreSQL for the tests of a module; skips where there is none, and says so."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    if programs() is None:
        pytest.skip(MISSING)
    with postgresql() as target:
        yield target


def created(kind: Kind, request: pytest.FixtureRequest, folder: Path) -> Database:
    """A new database with both tables and a table of effects."""
    if kind == "sqlite":
        database = Database(kind, str(folder / "app.db"))
        with database.transaction() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
    else:
        target = request.getfixturevalue("cluster_target")
        name = f"app_{os.getpid()}_{next(_NUMBERS)}"
        connection = Database(kind, target).connect()
        connection.autocommit = True
        connection.execute(f"CREATE DATABASE {name}")
        connection.close()
        database = Database(kind, target.replace("dbname=postgres", f"dbname={name}"))
    with database.transaction() as connection:
        Outbox().create(connection)
        fence.create(connection)
        connection.cursor().execute("CREATE TABLE effects (number INTEGER NOT NULL)")
    return database
