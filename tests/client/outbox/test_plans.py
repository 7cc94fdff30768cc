"""What a relay asks of a table with many rows: it follows the index, with no scan and no sort."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from jobline.outbox import Outbox
from jobline.outbox._rows import rows_of
from jobline.outbox._transactions import Rows, Transaction, transaction_of


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
    assert "USING INDEX" in first
    assert "SEARCH" in second
    assert "TEMP B-TREE" not in first + second
