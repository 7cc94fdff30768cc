"""Commits to tables from this process, without Spark: rows, and files that are there already.

Spark's writer takes about a second per table and batch, however few rows there are. The library
`deltalake` takes some milliseconds, and makes the same log: Spark reads these tables and goes on
writing them. It is used where the tables are in a directory. On object stores each library has a
way of its own to keep two commits apart, so there Spark writes alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction
from pyspark.sql.pandas.types import to_arrow_schema

from jobline_pipeline.footers import statistics_of
from jobline_pipeline.windows import Range, iso, predicate

if TYPE_CHECKING:
    from jobline_pipeline.store import Batch
    from jobline_pipeline.tables.table import Table

# Spark's file system leaves a checksum beside each file, and refuses one that changed since.
_STALE = "._last_checkpoint.crc"
# The version of the protocol for writers of tables that have no features.
_PLAIN_WRITER = 2
# Files that Spark reads by their names; a stream that was never optimized has many more.
_FILES_MAX = 500
# Spark takes other characters for patterns, or for those of a URL.
_PLAIN_PATH = re.compile(r"[\w/.=-]+\Z", re.ASCII)
# Columns of large tables by whose least and greatest values files are skipped.
STATISTICS = ("shard", "offset", "at", "ended_at", "pushed_at", "job_id", "batch_id")


class Direct:
    """The tables below a directory. Each write is one commit, that a table has once per batch."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, table: Table) -> Path:
        """Returns the directory of a table."""
        return self.root / table.layer / table.name

    def exists(self, table: Table) -> bool:
        """Returns whether the table was ever written."""
        return bool(DeltaTable.is_deltatable(str(self.path(table))))

    def takes(self, table: Table) -> bool:
        """Returns whether files of the table are all there is to know of its rows, and of what
        may be written.

        Deletion vectors, renamed columns, change data and whatever else a user may have switched on
        are left to Spark, as are types that only it knows.
        """
        if not self.exists(table):
            return True
        try:
            needs = DeltaTable(str(self.path(table))).protocol()
        except DeltaError:
            return False
        return bool(needs.min_reader_version == 1 and needs.min_writer_version <= _PLAIN_WRITER)

    def has(self, table: Table, batch: Batch) -> bool:
        """Returns whether the table has the write of a batch, by whichever library."""
        if not self.exists(table):
            return False
        opened = DeltaTable(str(self.path(table)))
        last = opened.transaction_version(batch.query)
        return last is not None and last >= batch.number

    def plain_files(self, table: Table) -> list[str] | None:
        """Returns the files whose rows are those of the table.

        None if there are no such files, or many, by the log of which Delta chooses better; or if
        their paths are odd.
        """
        if not self.exists(table) or not self.takes(table):
            return None
        files = [str(file) for file in DeltaTable(str(self.path(table))).file_uris()]
        fits = 0 < len(files) <= _FILES_MAX and all(_PLAIN_PATH.match(file) for file in files)
        return files if fits else None

    def files(
        self, table: Table, time: str | None = None, ranges: Sequence[Range] = ()
    ) -> list[Path]:
        """Returns the files of the table, without those that the log knows to have no row whose
        `time` is in the ranges.
        """
        if not self.exists(table):
            return []
        log = pa.table(DeltaTable(str(self.path(table))).get_add_actions(flatten=True))
        wanted = [True] * log.num_rows
        if ranges and f"max.{time}" in log.column_names:
            least, greatest = (_microseconds(log[f"{side}.{time}"]) for side in ("min", "max"))
            # Times of the log have milliseconds, and Spark rounds none of them up.
            wanted = [
                low is None or high is None or (low < ranges[-1][1] and high + 999 >= ranges[0][0])
                for low, high in zip(least, greatest, strict=True)
            ]
        names = zip(log["path"].to_pylist(), wanted, strict=True)
        return [self.path(table) / unquote(name) for name, is_wanted in names if is_wanted]

    def append(self, table: Table, rows: pa.Table, batch: Batch) -> None:
        """Adds rows."""
        self._write(table, rows, batch, mode="append")

    def overwrite(self, table: Table, rows: pa.Table, batch: Batch) -> None:
        """Puts rows in the place of all that were there."""
        self._write(table, rows, batch, mode="overwrite")

    def replace(self, table: Table, rows: pa.Table, ranges: Sequence[Range], batch: Batch) -> None:
        """Puts rows in the place of those whose window is in the ranges; others are refused."""
        if table.window is None:
            raise ValueError(f"{table.name} has no window")
        if ranges and self.exists(table):
            there = predicate(table.window, ranges, literal=iso)
            self._write(table, rows, batch, mode="overwrite", predicate=there)
        else:
            self._write(table, rows, batch, mode="append")

    def upsert(self, table: Table, rows: pa.Table, batch: Batch) -> None:
        """Puts each row in the place of that with its key, or adds it."""
        if not self.exists(table):
            self.append(table, rows, batch)
            return
        same = " AND ".join(f"old.{name} IS NOT DISTINCT FROM new.{name}" for name in table.key)
        merge = DeltaTable(str(self.path(table))).merge(
            _conformed(table, rows),
            predicate=same,
            source_alias="new",
            target_alias="old",
            commit_properties=_once(batch),
        )
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
        self._tidy(table)

    def add_files(self, table: Table, files: Sequence[str], batch: Batch) -> None:
        """Enters files, given by their paths in the table, in its log."""
        schema = _schema(table)
        if self.exists(table):
            opened = DeltaTable(str(self.path(table)))
        else:
            opened = DeltaTable.create(
                str(self.path(table)),
                schema,
                partition_by=table.partition,
                configuration=statistics(table),
            )
        opened.create_write_transaction(
            [_action(self.path(table), file) for file in files],
            "append",
            schema,
            partition_by=table.partition,
            commit_properties=_once(batch),
        )
        self._tidy(table)

    def _write(self, table: Table, rows: pa.Table, batch: Batch, **how: Any) -> None:
        if not self.exists(table):
            how["configuration"] = statistics(table)
        write_deltalake(
            str(self.path(table)),
            _conformed(table, rows),
            partition_by=table.partition,
            commit_properties=_once(batch),
            **how,
        )
        self._tidy(table)

    def _tidy(self, table: Table) -> None:
        (self.path(table) / "_delta_log" / _STALE).unlink(missing_ok=True)


def _once(batch: Batch) -> CommitProperties:
    return CommitProperties(app_transactions=[Transaction(batch.query, batch.number)])


def _action(folder: Path, path: str) -> AddAction:
    """Returns what the log says of a file."""
    found = (folder / path).stat()
    kept = statistics_of(pq.read_metadata(folder / path), STATISTICS)
    return AddAction(
        path=path,
        size=found.st_size,
        partition_values={"date": path.partition("/")[0].removeprefix("date=")},
        modification_time=found.st_mtime_ns // 1_000_000,
        data_change=True,
        stats=json.dumps(kept),
    )


def _microseconds(times: pa.ChunkedArray) -> list[int | None]:
    """Returns times as microseconds since 1970."""
    return list(times.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist())


def _schema(table: Table) -> pa.Schema:
    """The columns of a table, all of which may be NULL, as Spark makes them."""
    return to_arrow_schema(table.schema(), timezone="UTC")


def _conformed(table: Table, rows: pa.Table) -> pa.Table:
    """Rows of Spark; what it knows to be never NULL may be NULL in the table."""
    return rows.cast(_schema(table))


def statistics(table: Table) -> dict[str, str]:
    """Returns Delta's properties of a new table: of a large one, the columns with statistics.

    Those of forty columns cost a third of a write.
    """
    if not table.partition:
        return {}
    known = {column.name for column in table.columns}
    return {"delta.dataSkippingStatsColumns": ",".join(n for n in STATISTICS if n in known)}
