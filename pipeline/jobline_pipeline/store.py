"""The tables on disk: Delta Lake directories `<root>/<layer>/<table>`.

Each write belongs to a batch, and Delta leaves out a write of a batch that a table already has
(`txnAppId`, `txnVersion`), so a batch that was cut off may run again as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from delta.tables import DeltaTable
from pyspark.sql import functions as F

from jobline_pipeline.windows import Range, predicate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

    from jobline_pipeline.tables.table import Table


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
        self._there: set[str] = set()  # tables that were seen: nothing takes them away again

    def path(self, table: Table) -> str:
        """Returns where a table is."""
        return f"{self.root}/{table.layer}/{table.name}"

    @property
    def jvm(self) -> Any:
        """Spark's own JVM; None with Spark Connect, where it is another machine's."""
        return getattr(self.spark, "_jvm", None)

    @property
    def java_session(self) -> Any:
        """The session as that JVM knows it."""
        return self.spark._jsparkSession  # noqa: SLF001 - no public way

    def exists(self, table: Table) -> bool:
        """Returns whether the table was ever written."""
        if table.name not in self._there and DeltaTable.isDeltaTable(self.spark, self.path(table)):
            self._there.add(table.name)
        return table.name in self._there

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
            for key, value in skipping(table).items():
                writer = writer.option(key, value)
        return writer.option("txnAppId", batch.query).option("txnVersion", batch.number)


def skipping(table: Table) -> dict[str, str]:
    """Returns Delta's properties of a new table: the columns that have statistics.

    Those of all columns cost a third of a write of a large table, and for a small one they are
    most of the code that Spark compiles to write it.
    """
    kept = table.skipped_by or ((table.window,) if table.window else ())
    if not kept:
        return {"delta.dataSkippingNumIndexedCols": "0"}
    return {"delta.dataSkippingStatsColumns": ",".join(kept)}


def nothing(spark: SparkSession, table: Table) -> DataFrame:
    """Returns a table without rows. A range starts no process of Python; a list of rows would."""
    typed = [F.lit(None).cast(c.type).alias(c.name) for c in table.columns]
    return spark.range(0).select(typed)


def count_of(store: Store, table: Table) -> int:
    """Returns how many rows a table has."""
    return store.read(table).agg(F.count("*")).collect()[0][0]  # type: ignore[no-any-return]
