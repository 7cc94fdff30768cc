"""The two tables: their definitions, and names of tables as people may choose them."""

from __future__ import annotations

import re

from jobline.errors import InvalidArgument
from jobline.outbox._transactions import POSTGRESQL, SQLITE, Transaction

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?")
_TYPES = {
    SQLITE: {"bytes": "BLOB", "number": "INTEGER", "text": "TEXT"},
    POSTGRESQL: {"bytes": "BYTEA", "number": "BIGINT", "text": "TEXT"},
}

# A row is a job that is not pushed yet. `job`: the message `jobline.v1.NewJob`, without its key,
# which is `id`: a UUID of version 7, so that rows are in the order in which they were written.
# `error`: why the server refuses the job for good; such a row waits for somebody.
OUTBOX = """CREATE TABLE IF NOT EXISTS {table} (
  id {text} NOT NULL PRIMARY KEY,
  queue {text} NOT NULL,
  job {bytes} NOT NULL,
  size {number} NOT NULL,
  written_at_ms {number} NOT NULL,
  error {text}
)"""

# What a relay reads of the rows that wait, by queue: however many rows of a full queue, or refused
# ones, are before them, and however large the jobs are. A relay works without it, too.
INDEX = """CREATE INDEX IF NOT EXISTS {index} ON {indexed} (queue, id, size)
  WHERE error IS NULL"""

# The rows that were refused, which are few among those that wait: without it, to look for them
# reads all rows. Nothing else needs it.
FAILED_INDEX = """CREATE INDEX IF NOT EXISTS {index} ON {indexed} (id)
  WHERE error IS NOT NULL"""

# The queues that have rows which wait, and the id of their first one. From one queue the index
# leads to the next, so that this reads two entries for each queue; DISTINCT reads all of them.
WAITING_QUEUES = """WITH RECURSIVE queues(queue) AS (
  SELECT MIN(queue) FROM {table} WHERE error IS NULL
  UNION ALL
  SELECT (SELECT MIN(later.queue) FROM {table} AS later
    WHERE later.error IS NULL AND later.queue > queues.queue)
  FROM queues WHERE queues.queue IS NOT NULL
), waiting(queue, first_id) AS (
  SELECT queue, (SELECT MIN(own.id) FROM {table} AS own
    WHERE own.error IS NULL AND own.queue = queues.queue)
  FROM queues WHERE queue IS NOT NULL
)"""

# Rows that wait, rows that were refused, and when the oldest one that waits was written.
STATS = """SELECT COUNT(*) - COUNT(error), COUNT(error),
  MIN(CASE WHEN error IS NULL THEN written_at_ms END) FROM {table}"""

# The same for SQLite, which has `error` behind the whole job: this counts entries of indexes, and
# reads the first row of each queue, which is its oldest. PostgreSQL keeps large jobs apart, and
# shares one pass through the table among its processes.
STATS_BY_INDEX = (
    WAITING_QUEUES
    + """
SELECT counted.waiting, counted.rows_of_all - counted.waiting, counted.oldest FROM (SELECT
  (SELECT COUNT(*) FROM {table} WHERE error IS NULL) AS waiting,
  (SELECT COUNT(*) FROM {table}) AS rows_of_all,
  (SELECT MIN(written_at_ms) FROM {table} WHERE id IN (SELECT first_id FROM waiting)) AS oldest
) AS counted"""
)

# One row per job, whose step is '', with the newest delivery that has passed; and one per step that
# has passed. `job`: id and time of the push, as another server, or a new one in place of an old
# one, has the same ids.
FENCE = """CREATE TABLE IF NOT EXISTS {table} (
  job {text} NOT NULL,
  step {text} NOT NULL,
  delivery {number} NOT NULL,
  passed_at_ms {number} NOT NULL,
  PRIMARY KEY (job, step)
)"""


def table_given(table: str) -> str:
    """Returns the name of a table, perhaps with its schema. Raises InvalidArgument: it becomes part
    of statements.
    """
    if not _NAME.fullmatch(table):
        raise InvalidArgument(f"table: must be a plain name or schema.name, not {table!r}")
    return table


def definition(shape: str, table: str, dialect: str) -> str:
    """Returns the statement that creates a table. Raises InvalidArgument for a database that is not
    supported.
    """
    return shape.format(table=table, **_TYPES[supported(dialect)])


def index_of(table: str) -> str:
    """Returns the name of the index that relays read by."""
    return _index_name(table, "_queues")


def failed_index_of(table: str) -> str:
    """Returns the name of the index of the rows that were refused."""
    return _index_name(table, "_failed")


def _index_name(table: str, suffix: str) -> str:
    """PostgreSQL cuts names at 63 bytes."""
    return f"{table.rpartition('.')[2][:55]}{suffix}"


def index_definition(table: str, dialect: str) -> str:
    """Returns the statement that creates the index that relays read by. Raises InvalidArgument for
    a database that is not supported.
    """
    return _index_definition(INDEX, index_of(table), table, dialect)


def failed_index_definition(table: str, dialect: str) -> str:
    """Returns the statement that creates the index of the rows that were refused. Raises
    InvalidArgument for a database that is not supported.
    """
    return _index_definition(FAILED_INDEX, failed_index_of(table), table, dialect)


def _index_definition(shape: str, index: str, table: str, dialect: str) -> str:
    """In the schema of the table: SQLite wants that before the name of the index, PostgreSQL before
    the one of the table.
    """
    schema, dot, name = table.rpartition(".")
    if supported(dialect) == POSTGRESQL:
        return shape.format(index=index, indexed=table)
    return shape.format(index=f"{schema}{dot}{index}", indexed=name)


def exists(tx: Transaction, table: str) -> bool:
    """Returns whether a table exists."""
    if supported(tx.dialect) == POSTGRESQL:
        return bool(tx.rows("SELECT to_regclass(?) IS NOT NULL", table)[0][0])
    schema, dot, name = table.rpartition(".")
    found = f"SELECT 1 FROM {schema}{dot}sqlite_master WHERE type = 'table' AND lower(name) = ?"
    return bool(tx.rows(found, name.lower()))


def has_index(tx: Transaction, table: str) -> bool:
    """Returns whether an outbox has the index that relays read by, finished and usable."""
    schema, dot, _ = table.rpartition(".")
    index = f"{schema}{dot}{index_of(table)}"
    if supported(tx.dialect) == POSTGRESQL:
        usable = "SELECT COUNT(*) FROM pg_index WHERE indexrelid = to_regclass(?) AND indisvalid"
        return bool(tx.rows(usable, index)[0][0])
    return bool(tx.rows(f"PRAGMA {schema}{dot}index_info({index_of(table)})"))


def supported(dialect: str) -> str:
    """Returns a dialect. Raises InvalidArgument for one other than SQLite's and PostgreSQL's."""
    if dialect not in _TYPES:
        known = " and ".join(_TYPES)
        raise InvalidArgument(f"this needs a database of {known}, not {dialect}")
    return dialect
