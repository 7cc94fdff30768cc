"""`Outbox`: jobs written in the user's own transaction."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from jobline import _codec as codec
from jobline._arguments import number_given, refuse
from jobline._new_job import NewJob
from jobline._push.messages import fitting, row_of
from jobline._times import seconds_of
from jobline.outbox._ids import new_id
from jobline.outbox._tables import (
    OUTBOX,
    STATS,
    STATS_BY_INDEX,
    definition,
    exists,
    failed_index_definition,
    has_index,
    index_definition,
    table_given,
)
from jobline.outbox._transactions import SQLITE, transaction_of

# The server's limit of a payload is 10 MiB; options are small beside it.
ROW_BYTES_MAX = 11 << 20


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A job that is not pushed yet. `error`: why the server refuses it for good; "" for one that
    waits for its relay.
    """

    id: str
    queue: str
    written_at: datetime
    error: str


@dataclass(frozen=True, slots=True)
class OutboxStats:
    """Rows of an outbox: those that wait, those that were refused for good, and since when the
    oldest one waits; None if none does.
    """

    waiting: int
    failed: int
    oldest: datetime | None


class Outbox:
    """A table of jobs that are to be pushed: `table`, default "jobline_outbox", perhaps with its
    schema.

    Wherever a method takes `tx`, that is a connection of sqlite3, psycopg or another driver by
    DB-API, a Connection or Session of SQLAlchemy, or Django's `connection`; the caller commits. It
    has no state, and serves all threads.
    """

    def __init__(self, table: str = "jobline_outbox") -> None:
        self.table = table_given(table)

    def ddl(self, dialect: Literal["sqlite", "postgresql"]) -> str:
        """Returns the statement that creates the table, for migrations. Raises InvalidArgument for
        another database.
        """
        return definition(OUTBOX, self.table, dialect)

    def index_ddl(self, dialect: Literal["sqlite", "postgresql"]) -> str:
        """Returns the statement that creates the index that a relay reads rows by, for migrations.
        Raises InvalidArgument for another database.
        """
        return index_definition(self.table, dialect)

    def failed_index_ddl(self, dialect: Literal["sqlite", "postgresql"]) -> str:
        """Returns the statement that creates the index that `failed` and `retry_failed` find rows
        by, for migrations. Raises InvalidArgument for another database.
        """
        return failed_index_definition(self.table, dialect)

    def create(self, tx: Any) -> None:
        """Creates the table with its indexes, unless the table exists.

        A table that exists gets no index here: PostgreSQL would hold up all who write to it, and
        allows that to its owner alone. `index_ddl` and `failed_index_ddl` are for migrations.
        """
        transaction = transaction_of(tx)
        if not exists(transaction, self.table):
            transaction.execute(definition(OUTBOX, self.table, transaction.dialect))
            transaction.execute(index_definition(self.table, transaction.dialect))
            transaction.execute(failed_index_definition(self.table, transaction.dialect))

    # ------------------------------------------------------------------ writing

    def push(self, tx: Any, job: Any, /, *values: Any, **how: Any) -> str:
        """Writes a job, to be pushed if the transaction commits: `outbox.push(tx, "mail", payload,
        priority=9)`, or a declared job with what its `push` takes, `outbox.push(tx, resize,
        path="a.png")`. Returns the id of the row, which becomes the job's key.

        The keywords are those of `Client.push`, without `job_key` and `ack_level`; `delay` counts
        from now. Raises InvalidArgument, as a push does, for what cannot be pushed, and for a
        connection in which no transaction is open and each statement commits by itself.
        """
        transaction = transaction_of(tx)
        transaction.refuse_autocommit("a job of an outbox")
        id_, statement, parameters = self._row(job, values, how)
        transaction.execute(statement, *parameters)
        return id_

    def statement(
        self, job: Any, /, *values: Any, **how: Any
    ) -> tuple[str, tuple[str | bytes | int, ...]]:
        """Returns the statement that writes a job, with `%s` for its parameters, and these: for
        libraries that `push` does not know, such as those that are awaited:
        `await connection.execute(*outbox.statement("mail", payload))`.
        """
        _, statement, parameters = self._row(job, values, how)
        return statement.replace("?", "%s"), parameters

    def _row(
        self, job: Any, values: tuple[Any, ...], how: dict[str, Any]
    ) -> tuple[str, str, tuple[str | bytes | int, ...]]:
        queue, message = _message_of(job, values, how)
        id_ = new_id()
        statement = (
            f"INSERT INTO {self.table} (id, queue, job, size, written_at_ms) VALUES (?, ?, ?, ?, ?)"
        )
        now_ms = time.time_ns() // 1_000_000
        return id_, statement, (id_, queue, message, len(message), now_ms)

    # ------------------------------------------------------------------ looking

    def stats(self, tx: Any) -> OutboxStats:
        """Counts the rows: a tenth of a second for a million in SQLite by the index of the table,
        half a second in PostgreSQL, and no job is read. SQLite without the index reads all jobs.
        """
        transaction = transaction_of(tx)
        is_by_index = transaction.dialect == SQLITE and has_index(transaction, self.table)
        statement = STATS_BY_INDEX if is_by_index else STATS
        ((waiting, failed, oldest),) = transaction.rows(statement.format(table=self.table))
        return OutboxStats(waiting, failed, None if oldest is None else _moment(oldest))

    def failed(self, tx: Any, *, limit: int = 100) -> list[OutboxRow]:
        """Returns up to `limit` jobs that the server refused for good, or that cannot be
        read, the oldest first."""
        most = number_given("limit", limit, minimum=1)
        rows = transaction_of(tx).rows(
            f"SELECT id, queue, written_at_ms, error FROM {self.table}"
            " WHERE error IS NOT NULL ORDER BY id LIMIT ?",
            most,
        )
        return [OutboxRow(id_, queue, _moment(at), error) for id_, queue, at, error in rows]

    def retry_failed(self, tx: Any) -> int:
        """Has the relay push those again that were refused; returns how many there are."""
        return transaction_of(tx).execute(
            f"UPDATE {self.table} SET error = NULL WHERE error IS NOT NULL"
        )


class _Capture:
    """Stands in for a client: keeps what a declared job pushes."""

    def __init__(self) -> None:
        self.pushed: tuple[Any, Any, dict[str, Any]] = ("", b"", {})

    def push(self, queue: Any, payload: Any = b"", **how: Any) -> None:
        self.pushed = (queue, payload, how)


def _message_of(job: Any, values: tuple[Any, ...], how: dict[str, Any]) -> tuple[str, bytes]:
    """Returns the queue and the message of a job. Raises InvalidArgument."""
    capture = _Capture()
    if isinstance(job, str):
        capture.push(job, *values, **how)
    elif hasattr(job, "with_options"):
        job.push(capture, *values, **how)
    else:
        refuse("job", f"must be a queue or a declared job, not {job!r}")
    queue, payload, how = capture.pushed
    if how.get("job_key") is not None:
        refuse("job_key", "the key of a job in an outbox is the id of its row")
    data, content_type = codec.encode(payload)
    if how.get("delay") is not None:
        # Counted from now on, not from the moment at which a relay comes by.
        if how.get("run_at") is not None:
            refuse("delay", "give delay or run_at, not both")
        how["run_at"] = datetime.now(UTC) + timedelta(seconds=seconds_of(how.pop("delay")))
    with fitting():
        new = NewJob(data, **{key: value for key, value in how.items() if value is not None})
        message = row_of(new, data, is_json=bool(content_type)).SerializeToString()
    if len(message) > ROW_BYTES_MAX:
        refuse("payload", f"a job of an outbox has at most 11 MiB, not {len(message)} bytes")
    return queue, message


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1_000, UTC)
