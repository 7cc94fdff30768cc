"""The tables in a directory of this machine: DuckDB computes them, and `direct` commits.

Spark plans and compiles thirty queries for as long as DuckDB takes to run them over some million
events. Both are told by the same text (`sql`) what a table is, so the tables are the same. What
only Spark computes (`frame`) is small.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jobline_pipeline.bronze import add_events, ending_of
from jobline_pipeline.duck import Duck, Query
from jobline_pipeline.tables.all import TABLES
from jobline_pipeline.windows import predicate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from jobline_pipeline.direct import Direct
    from jobline_pipeline.history import Piece
    from jobline_pipeline.store import Batch, Store
    from jobline_pipeline.tables.table import Table
    from jobline_pipeline.windows import Range

# In a path, DuckDB looks for files by these, or for a column.
_PATTERN = re.compile(r"[*?\[\]{}=]")


class Local:
    """The same as a `Store`, for the time of a batch."""

    def __init__(self, store: Store, direct: Direct) -> None:
        self._store = store
        self._direct = direct
        self._duck = Duck(store.memory)

    def close(self) -> None:
        """Ends DuckDB."""
        self._duck.close()

    def exists(self, table: Table) -> bool:
        """Returns whether the table was ever written."""
        return self._direct.exists(table)

    def frame(self, table: Table) -> DataFrame:
        """Returns the rows of a table for Spark."""
        return self._store.read(table)

    def read(self, table: Table) -> Query:
        """Returns the rows of a table; none if it was never written."""
        return self._files(table, self._direct.files(table))

    def within(self, table: Table, time: str, ranges: Sequence[Range]) -> Query:
        """Returns the rows whose `time` is in the ranges."""
        found = self._files(table, self._direct.files(table, time, ranges))
        return found.filter(predicate(f"`{time}`", ranges, table.partition))

    def of_batch(self, table: Table, batch: Batch) -> Query | None:
        """Returns the rows that a batch has added as files; None if these were joined since."""
        ending = ending_of(batch)
        files = [f for f in self._direct.files(table) if f.name.endswith(ending)]
        return self._files(table, files) if files else None

    def rows(self, found: Query) -> list[dict[str, Any]]:
        """Returns rows as dictionaries."""
        return found.arrow().to_pylist()  # type: ignore[no-any-return]

    @contextmanager
    def kept(self, rows: Query) -> Iterator[tuple[Query, int]]:
        """Computes rows once; returns how many there are, too."""
        kept = self._duck.kept(rows)
        counted = self._duck.query("SELECT count(*) AS n FROM {rows} AS kept", {"rows": kept})
        yield kept, counted.arrow()["n"][0].as_py()

    def copy(self, pieces: Sequence[Piece], batch: Batch) -> None:
        """Adds rows of exported files to `events`."""
        add_events(self._direct, pieces, batch)

    def append(self, table: Table, rows: Query, batch: Batch) -> None:
        """Adds the rows of a batch, which may be many, as files."""
        if self._direct.has(table, batch):
            return
        assert table.partition  # noqa: S101 - those of many rows have one
        files = self._duck.write(
            rows, self._direct.path(table), f"part-{{i}}{ending_of(batch)}", table.partition
        )
        self._direct.add_files(table, files, batch)

    def add(self, table: Table, rows: pa.Table, batch: Batch) -> None:
        """Adds rows that this process has, with the columns of the table."""
        if not self._direct.has(table, batch):
            self._direct.append(table, rows, batch)

    def overwrite(self, table: Table, rows: Query | DataFrame, batch: Batch) -> None:
        """Puts the rows in the place of all that were there."""
        if not self._direct.has(table, batch):
            found = rows.arrow() if isinstance(rows, Query) else rows.toArrow()
            self._direct.overwrite(table, found, batch)

    def replace(self, table: Table, rows: Query, ranges: Sequence[Range], batch: Batch) -> None:
        """Puts the rows in the place of those whose window is in the ranges."""
        if not self._direct.has(table, batch):
            self._direct.replace(table, rows.arrow(), ranges, batch)

    def upsert(self, table: Table, rows: Query, batch: Batch) -> None:
        """Puts each row in the place of that with its key, or adds it."""
        if not self._direct.has(table, batch):
            self._direct.upsert(table, rows.arrow(), batch)

    def _files(self, table: Table, files: Sequence[Any]) -> Query:
        columns = {column.name: column.type.simpleString() for column in table.columns}
        return self._duck.files(columns, files, table.partition)


@contextmanager
def opened(store: Store) -> Iterator[Local | None]:
    """Returns the tables of a store for DuckDB; None if they are not in a directory, or in one that
    it takes for a pattern, or if one of them has a feature that only Spark knows.
    """
    direct = store.direct
    is_plain = direct is not None and not _PATTERN.search(str(direct.root))
    if direct is None or not is_plain or not all(direct.takes(table) for table in TABLES):
        yield None
        return
    local = Local(store, direct)
    try:
        yield local
    finally:
        local.close()
