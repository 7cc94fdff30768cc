"""What a relay asks of a table with many rows: it follows the index, with no scan and no sort."""

from __future__ import annotations

import itertools
import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from jobline.outbox import Outbox, OutboxStats
from jobline.outbox._rows import rows_of
from jobline.outbox._tables import has_index
from jobline.outbox._transactions import Rows, Transaction, transaction_of
from tests.client.outbox.databases import Database

OUTBOX = Outbox()


class Planned(Transaction):
    """Keeps the plan of each query; in PostgreSQL with what it has read. And that of updates."""

    def __init__(self, connection: Any) -> None:
        self._tx = transaction_of(connection)
        self.dialect = self._tx.dialect
        self.plans: list[str] = []

    def rows(self, statement: str, *parameters: object) -> Rows:
        explain = "EXPLAIN QUERY PLAN" if self.dialect == "sqlite" else "EXPLAIN ANALYZE"
        found = self._tx.rows(f"{explain} {statement}", *parameters)
        self.plans.append("; ".join(row[-1] for row in found))
        return self._tx.rows(statement, *parameters)

    def execute(self, statement: str, *parameters: object) -> int:
        if statement.startswith("UPDATE"):
            explain = "EXPLAIN QUERY PLAN" if self.dialect == "sqlite" else "EXPLAIN"
            found = self._tx.rows(f"{explain} {statement}", *parameters)
            self.plans.append("; ".join(row[-1] for row in found))
        return self._tx.execute(statement, *parameters)

    def commit(self) -> None:
        self._tx.commit()

    def rollback(self) -> None:
        self._tx.rollback()


def fill(connection: Any, queue: str, count: int, error: str | None = None) -> None:
    """Writes rows without jobs, whose ids begin with the name of the queue."""
    why = "NULL" if error is None else f"'{error}'"
    values = ", ".join(f"('{queue}-{n:04}', '{queue}', '', 0, {n}, {why})" for n in range(count))
    connection.cursor().execute(f"INSERT INTO jobline_outbox VALUES {values}")


def test_rows_of_full_queues_and_refused_ones_are_not_read(database: Database) -> None:
    """However many there are before those that are pushed."""
    with database.transaction() as tx:
        fill(tx, "a-bad", 3_000, "no")
        fill(tx, "a-full", 3_000)
        fill(tx, "b", 10)
        fill(tx, "c", 10)
        tx.cursor().execute("ANALYZE")
    with database.transaction() as tx:
        planned = Planned(tx)
        found = rows_of(planned, OUTBOX.table, ["a-full"], 15)
    assert [row.queue for row in found] == ["b"] * 10 + ["c"] * 5
    text = "\n".join(planned.plans[1:])  # the first one asks for the index
    assert text.count("jobline_outbox_queues") >= 5
    assert not re.search(r"Seq Scan|SCAN jobline_outbox;|Removed by Filter: \d\d", text)
    assert text.count("B-TREE") <= 1  # the order of the queues


def test_a_look_costs_as_much_behind_more_rows_of_a_full_queue() -> None:
    """SQLite counts the steps of its machine."""
    with closing(sqlite3.connect(":memory:")) as connection:
        OUTBOX.create(connection)
        fill(connection, "b", 10)
        costs = []
        steps = itertools.count()
        for size in (10, 5_000):
            connection.execute("DELETE FROM jobline_outbox WHERE queue = 'a'")
            fill(connection, "a", size)
            before = next(steps)
            connection.set_progress_handler(lambda: next(steps) < 0, 1)  # False lets it go on
            assert len(rows_of(transaction_of(connection), OUTBOX.table, ["a"], 5)) == 5
            connection.set_progress_handler(None, 1)
            costs.append(next(steps) - before)
    assert costs[0] == costs[1]


def test_the_queue_with_the_oldest_row_comes_first(database: Database) -> None:
    """Its rows up to the end of the batch, then those of the next one; the smallest of all fits."""
    with database.transaction() as tx:
        for queue in ("z", "a", "z", "m"):
            OUTBOX.push(tx, queue, queue)
        open_tx = transaction_of(tx)
        found = [[row.queue for row in rows_of(open_tx, OUTBOX.table, [], n)] for n in (1, 2, 3, 9)]
        assert sorted(found[3]) == ["a", "m", "z", "z"]
        assert found[:2] == [["z"], ["z", "z"]]
        assert sorted(found[2]) == ["a", "z", "z"]
        assert rows_of(open_tx, OUTBOX.table, ["z", "a", "m"], 9) == []


_OLD_INDEX = (
    "CREATE INDEX jobline_outbox_waiting ON jobline_outbox (id, queue, size) WHERE error IS NULL"
)


@pytest.mark.parametrize("index", ["", _OLD_INDEX], ids=["none", "by-id"])
def test_a_table_of_an_earlier_version_is_read_by_id(database: Database, index: str) -> None:
    """Until a migration makes the index of today."""
    with database.transaction() as tx:
        planned = Planned(tx)
        planned.execute("DROP INDEX jobline_outbox_queues")
        if index:
            planned.execute(index)
        for queue in ("held", "q", "r", "q"):
            OUTBOX.push(tx, queue, 1)
        by_id = rows_of(planned, OUTBOX.table, ["held"], 3)
        assert [row.queue for row in by_id] == ["q", "r", "q"]
        assert OUTBOX.stats(tx).waiting == 4
        planned.execute(OUTBOX.index_ddl(database.kind))
        assert rows_of(planned, OUTBOX.table, ["held"], 3) == by_id


def test_an_index_that_is_not_finished_is_not_relied_on(database: Database) -> None:
    """PostgreSQL has one while, and after, CREATE INDEX CONCURRENTLY runs or fails."""
    if database.kind == "sqlite":
        pytest.skip("SQLite has none of these")
    with database.transaction() as tx:
        assert has_index(transaction_of(tx), OUTBOX.table)
        tx.execute(
            "UPDATE pg_index SET indisvalid = false"
            " WHERE indexrelid = 'jobline_outbox_queues'::regclass"
        )
        assert not has_index(transaction_of(tx), OUTBOX.table)


@pytest.mark.parametrize("is_indexed", [True, False])
def test_the_rows_are_counted(database: Database, is_indexed: bool) -> None:
    """In SQLite by the index, where there is one: it would read the jobs otherwise."""
    with database.transaction() as tx:
        planned = Planned(tx)
        if not is_indexed:
            planned.execute("DROP INDEX jobline_outbox_queues")
        assert OUTBOX.stats(planned) == OutboxStats(0, 0, None)
        fill(tx, "a", 2, "no")
        assert OUTBOX.stats(planned) == OutboxStats(0, 2, None)
        fill(tx, "b", 3)
        fill(tx, "c", 4)
        for queue, later in (("b", 100), ("c", 50)):
            planned.execute(
                f"UPDATE jobline_outbox SET written_at_ms = written_at_ms + {later}"
                f" WHERE queue = '{queue}'"
            )
        oldest = datetime.fromtimestamp(0.05, UTC)
        assert OUTBOX.stats(planned) == OutboxStats(7, 2, oldest)
    if database.kind == "sqlite":
        is_scan = re.search(r"SCAN jobline_outbox(;|$)", planned.plans[-1])
        assert (is_scan is None) is is_indexed


@pytest.mark.parametrize("is_indexed", [True, False])
def test_refused_rows_are_found_by_their_index(database: Database, is_indexed: bool) -> None:
    """Without a look at those that wait. A table without it is searched."""
    with database.transaction() as tx:
        planned = Planned(tx)
        if not is_indexed:
            planned.execute("DROP INDEX jobline_outbox_failed")
        fill(tx, "a", 3_000)
        fill(tx, "b", 4, "no")
        fill(tx, "c", 3_000)
        tx.cursor().execute("ANALYZE")
        assert [row.id for row in OUTBOX.failed(planned, limit=3)] == ["b-0000", "b-0001", "b-0002"]
        assert OUTBOX.retry_failed(planned) == 4
        assert OUTBOX.failed(planned) == []
    assert [("jobline_outbox_failed" in plan) for plan in planned.plans] == [is_indexed] * 3


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
    assert not {"jobs_queues", "jobs_failed"} & set(indices(database))
    for _ in range(2):
        with database.transaction() as tx:
            tx.cursor().execute(outbox.index_ddl(database.kind))
            tx.cursor().execute(outbox.failed_index_ddl(database.kind))
    assert {"jobs_queues", "jobs_failed"} <= set(indices(database))


def test_an_index_has_another_name_than_a_table_with_a_long_one(database: Database) -> None:
    """PostgreSQL cuts names at 63 bytes."""
    outbox = Outbox("j" * 63)
    with database.transaction() as tx:
        outbox.create(tx)
        outbox.create(tx)
    assert {f"{'j' * 55}_queues", f"{'j' * 55}_failed"} <= set(indices(database))
