"""What a relay asks of a table with many rows: it follows the index, with no scan and no sort."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from jobline.outbox import Outbox
from jobline.outbox._rows import rows_of
from jobline.outbox._transactions import Rows, Transaction, transaction_of
from tests.client.outbox.databases import Database

OUTBOX = Outbox()


class Planned(Transaction):
    """Keeps the plan of each query."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._tx = transaction_of(connection)
        self.dialect = self._tx.dialect
        self.plans: list[str] = []

    def rows(self, statement: str, *parameters: object) -> Rows:
        found = self._tx.rows(f"EXPLAIN QUERY PLAN {statement}", *parameters)
        self.plans.append("; ".join(row[-1] for row in found))
        return self._tx.rows(statement, *parameters)

    def execute(self, statement: str, *parameters: object) -> int:
        return self._tx.execute(statement, *parameters)

    def commit(self) -> None:
        self._tx.commit()

    def rollback(self) -> None:
        self._tx.rollback()


@pytest.fixture
def planned() -> Iterator[Planned]:
    with closing(sqlite3.connect(":memory:")) as connection:
        outbox = Outbox()
        outbox.create(connection)
        for number in range(10):
            outbox.push(connection, "mail", payload=number)
        yield Planned(connection)


@pytest.mark.parametrize("held", [[], ["mail-2", "mail-3"]])
def test_a_batch_follows_the_index(planned: Planned, held: list[str]) -> None:
    """The first rows by id are at its beginning, however many there are."""
    assert len(rows_of(planned, Outbox().table, held, 5)) == 5
    first, second = planned.plans
    assert "USING INDEX jobline_outbox_waiting" in first
    assert "SEARCH" in second
    assert "TEMP B-TREE" not in first + second


def test_a_table_of_the_first_version_is_read_by_its_key(planned: Planned) -> None:
    """It has no index of its own, until a migration makes one."""
    planned.execute("DROP INDEX jobline_outbox_waiting")
    assert len(rows_of(planned, Outbox().table, [], 5)) == 5
    assert "USING INDEX sqlite_autoindex" in planned.plans[0]
    planned.execute(Outbox().index_ddl("sqlite"))
    assert len(rows_of(planned, Outbox().table, [], 5)) == 5
    assert "jobline_outbox_waiting" in planned.plans[2]


def test_refused_rows_are_not_read(database: Database) -> None:
    """However many there are before those that wait: PostgreSQL counts what a query reads."""
    with database.transaction() as tx:
        refused = ", ".join(f"('{number:04}', 'mail', '', 0, 0, 'no')" for number in range(3_000))
        tx.cursor().execute(f"INSERT INTO jobline_outbox VALUES {refused}")
        for number in range(10):
            OUTBOX.push(tx, "mail", number)
    query = "SELECT id, queue, size FROM jobline_outbox WHERE error IS NULL ORDER BY id LIMIT 5"
    if database.kind == "sqlite":
        (plan,) = database.query(f"EXPLAIN QUERY PLAN {query}")
        assert "USING INDEX jobline_outbox_waiting" in plan[-1]
        return
    with database.transaction() as tx:
        tx.execute("ANALYZE jobline_outbox")
    lines = database.query(f"EXPLAIN ANALYZE {query} FOR UPDATE SKIP LOCKED")
    text = "\n".join(line for (line,) in lines)
    assert "Index Scan using jobline_outbox_waiting" in text
    assert "Rows Removed by Filter" not in text


def indices(database: Database) -> list[str]:
    catalog = {
        "sqlite": "SELECT lower(name) FROM sqlite_master WHERE type = 'index'",
        "postgresql": "SELECT indexname FROM pg_indexes",
    }
    return [name for (name,) in database.query(catalog[database.kind])]


def test_a_table_that_exists_gets_its_index_from_a_migration(database: Database) -> None:
    """Not from `create`, which programs call at each start: it would hold up who writes."""
    schema = "main" if database.kind == "sqlite" else "public"
    outbox = Outbox(f"{schema}.Jobs")
    with database.transaction() as tx:
        tx.cursor().execute(outbox.ddl(database.kind))
        outbox.create(tx)
    assert "jobs_waiting" not in indices(database)
    for _ in range(2):
        with database.transaction() as tx:
            tx.cursor().execute(outbox.index_ddl(database.kind))
    assert "jobs_waiting" in indices(database)


def test_an_index_has_another_name_than_a_table_with_a_long_one(database: Database) -> None:
    """PostgreSQL cuts names at 63 bytes."""
    outbox = Outbox("j" * 63)
    with database.transaction() as tx:
        outbox.create(tx)
        outbox.create(tx)
    assert f"{'j' * 55}_waiting" in indices(database)
