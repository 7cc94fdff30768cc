"""The tables on disk: Delta Lake directories `<root>/<layer>/<table>`.

Each write belongs to a batch, and Delta leaves out a write of a batch that a table already has
(`txnAppId`, `txnVersion`), so a batch that was cut off may run again as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from jobline_pipeline.windows import Range, predicate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

    from jobline_pipeline.tables.table import Table


# Columns of large tables by whose least and greatest values files are skipped.
_STATISTICS = ("shard", "offset", "at", "ended_at", "pushed_at", "job_id", "batch_id")

# What Delta says of a place without a table.
_NO_TABLE = "DELTA_MISSING_DELTA_TABLE"


@dataclass(frozen=True, slots=True)
class Batch:
    """Which batch of which query writes; a query numbers its batches from 0."""

    query: str
    number: int


class Store:
    """The tables below `root`, a directory or a URL that Spark knows."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.spark = spark
        self.root = root.rstrip("/")

    def path(self, table: Table) -> str:
        """Returns where a table is."""
        return f"{self.root}/{table.layer}/{table.name}"

    def exists(self, table: Table) -> bool:
        """Returns whether the table was ever written."""
        if is_remote():
            return self._is_described(table)
        return bool(DeltaTable.isDeltaTable(self.spark, self.path(table)))

    def _is_described(self, table: Table) -> bool:
        """Asks in SQL: a server of Spark Connect understands `DeltaTable` only with a plugin."""
        try:
            self.spark.sql(f"DESCRIBE DETAIL delta.`{self.path(table)}`")
        except AnalysisException as error:
            if error.getCondition() != _NO_TABLE:
                raise
            return False
        return True

    def read(self, table: Table) -> DataFrame:
        """Returns the rows of a table; none if it was never written."""
        if not self.exists(table):
            return nothing(self.spark, table)
        return self.spark.read.format("delta").load(self.path(table))

    def append(self, table: Table, rows: DataFrame, batch: Batch) -> None:
        """Adds the rows of a batch."""
        self._write(table, rows, batch).mode("append").save(self.path(table))

    def overwrite(self, table: Table, rows: DataFrame, batch: Batch) -> None:
        """Puts the rows in the place of all that were there."""
        self._write(table, rows, batch).mode("overwrite").save(self.path(table))

    def replace(self, table: Table, rows: DataFrame, ranges: Sequence[Range], batch: Batch) -> None:
        """Puts the rows in the place of those whose window is in the ranges."""
        if table.window is None:
            raise ValueError(f"{table.name} has no window")
        writer = self._write(table, rows, batch).mode("overwrite")
        if self.exists(table):
            writer = writer.option("replaceWhere", predicate(table.window, ranges))
        writer.save(self.path(table))

    def upsert(self, table: Table, rows: DataFrame, batch: Batch) -> None:
        """Puts each row in the place of that with its key, or adds it."""
        if not self.exists(table):
            self.append(table, rows, batch)
            return
        same = " AND ".join(f"old.{name} <=> new.{name}" for name in table.key)
        merge = DeltaTable.forPath(self.spark, self.path(table)).alias("old")
        merge.merge(
            rows.alias("new"), same
        ).whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    def _write(self, table: Table, rows: DataFrame, batch: Batch) -> DataFrameWriter:
        if table.layer == "gold":
            rows = rows.coalesce(1)  # some thousand rows: one file, not one per partition
        writer = rows.write.format("delta")
        if table.partition:
            writer = writer.partitionBy(table.partition)
            if not self.exists(table):
                # Statistics of forty columns cost a third of a write; these are filtered by.
                known = {column.name for column in table.columns}
                kept = ",".join(name for name in _STATISTICS if name in known)
                writer = writer.option("delta.dataSkippingStatsColumns", kept)
        return writer.option("txnAppId", batch.query).option("txnVersion", batch.number)


def nothing(spark: SparkSession, table: Table) -> DataFrame:
    """Returns a table without rows. A range starts no process of Python; a list of rows would."""
    typed = [F.lit(None).cast(c.type).alias(c.name) for c in table.columns]
    return spark.range(0).select(typed)


def count_of(store: Store, table: Table) -> int:
    """Returns how many rows a table has."""
    return store.read(table).agg(F.count("*")).collect()[0][0]  # type: ignore[no-any-return]
