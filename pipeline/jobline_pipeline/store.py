"""The tables on disk: Delta Lake directories `<root>/<layer>/<table>`.

Each write belongs to a batch, and Delta leaves out a write of a batch that a table already has
(`txnAppId`, `txnVersion`), so a batch that was cut off may run again as a whole.

Here Spark computes and writes them. Where they are in a directory of this machine, `local` does.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from jobline_pipeline.direct import Direct, statistics
from jobline_pipeline.sql import Rows
from jobline_pipeline.windows import Range, predicate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

    from jobline_pipeline.tables.table import Table


# What Delta says of a place without a table.
_NO_TABLE = "DELTA_MISSING_DELTA_TABLE"


@dataclass(frozen=True, slots=True)
class Batch:
    """Which batch of which query writes; a query numbers its batches from 0."""

    query: str
    number: int


class Tables(Protocol[Rows]):
    """What makes tables is given: a `Store`, or a `Local`."""

    def exists(self, table: Table) -> bool:
        """Returns whether the table was ever written."""

    def read(self, table: Table) -> Rows:
        """Returns the rows of a table; none if it was never written."""

    def frame(self, table: Table) -> DataFrame:
        """Returns the same for what only Spark computes."""

    def within(self, table: Table, time: str, ranges: Sequence[Range]) -> Rows:
        """Returns the rows whose `time` is in the ranges."""

    def rows(self, found: Rows) -> list[dict[str, Any]]:
        """Returns rows as dictionaries."""

    def kept(self, rows: Rows) -> AbstractContextManager[tuple[Rows, int]]:
        """Computes rows once, and keeps them meanwhile; returns how many there are, too."""

    def append(self, table: Table, rows: Rows, batch: Batch) -> None:
        """Adds the rows of a batch."""

    def add(self, table: Table, rows: pa.Table, batch: Batch) -> None:
        """Adds rows that this process has, with the columns of the table."""

    def overwrite(self, table: Table, rows: Rows | DataFrame, batch: Batch) -> None:
        """Puts the rows in the place of all that were there."""

    def replace(self, table: Table, rows: Rows, ranges: Sequence[Range], batch: Batch) -> None:
        """Puts the rows in the place of those whose window is in the ranges."""

    def upsert(self, table: Table, rows: Rows, batch: Batch) -> None:
        """Puts each row in the place of that with its key, or adds it."""


class Store:
    """The tables below `root`, a directory or a URL that Spark knows.

    `direct` is None where only Spark can write them.
    """

    def __init__(self, spark: SparkSession, root: str) -> None:
        self.spark = spark
        self.root = root.rstrip("/")
        directory = _directory(spark, self.root)
        self.direct = Direct(directory) if directory else None

    @property
    def memory(self) -> str:
        """The heap of the driver, as Java writes it (`4g`)."""
        return str(self.spark.conf.get("spark.driver.memory", "1g"))

    def path(self, table: Table) -> str:
        """Returns where a table is."""
        return f"{self.root}/{table.layer}/{table.name}"

    def exists(self, table: Table) -> bool:
        """Returns whether the table was ever written."""
        if self.direct:
            return self.direct.exists(table)
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
        """Returns the rows of a table; none if it was never written.

        Spark reads a few files by their names: planning by the log takes it half a second a table.
        """
        files = self.direct.plain_files(table) if self.direct else None
        if files:
            reader = self.spark.read.schema(table.schema())
            return reader.option("basePath", self.path(table)).parquet(*files)
        if not self.exists(table):
            return nothing(self.spark, table)
        return self.spark.read.format("delta").load(self.path(table))

    def frame(self, table: Table) -> DataFrame:
        """Returns the rows of a table for what only Spark computes."""
        return self.read(table)

    def within(self, table: Table, time: str, ranges: Sequence[Range]) -> DataFrame:
        """Returns the rows whose `time` is in the ranges."""
        return self.read(table).filter(predicate(f"`{time}`", ranges, table.partition))

    def rows(self, found: DataFrame) -> list[dict[str, Any]]:
        """Returns rows as dictionaries."""
        return [row.asDict() for row in found.collect()]

    @contextmanager
    def kept(self, rows: DataFrame) -> Iterator[tuple[DataFrame, int]]:
        """Computes rows once, and keeps them; returns how many there are, too.

        So Spark knows it when it plans a join. It would shuffle the whole other side otherwise, for
        the few that are found.
        """
        kept = rows.persist()
        try:
            yield kept, kept.count()
        finally:
            kept.unpersist()

    def append(self, table: Table, rows: DataFrame, batch: Batch) -> None:
        """Adds the rows of a batch."""
        self._write(table, rows, batch).mode("append").save(self.path(table))

    def add(self, table: Table, rows: pa.Table, batch: Batch) -> None:
        """Adds rows that this process has, with the columns of the table."""
        # A table of Arrow needs no process of Python, a list of rows does.
        self.append(table, table.conform(self.spark.createDataFrame(rows)).coalesce(1), batch)

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
        self.spark.sql(
            f"MERGE INTO delta.`{self.path(table)}` AS old USING {{rows}} AS new ON {same} "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            rows=rows,
        )

    def _write(self, table: Table, rows: DataFrame, batch: Batch) -> DataFrameWriter:
        if table.layer == "gold":
            rows = rows.coalesce(1)  # some thousand rows: one file, not one per partition
        writer = rows.write.format("delta")
        if table.partition:
            writer = writer.partitionBy(table.partition)
        if not self.exists(table):
            for key, value in statistics(table).items():
                writer = writer.option(key, value)
        return writer.option("txnAppId", batch.query).option("txnVersion", batch.number)


def nothing(spark: SparkSession, table: Table) -> DataFrame:
    """Returns a table without rows. A range starts no process of Python; a list of rows would."""
    typed = [F.lit(None).cast(c.type).alias(c.name) for c in table.columns]
    return spark.range(0).select(typed)


def count_of(store: Store, table: Table) -> int:
    """Returns how many rows a table has."""
    return store.read(table).agg(F.count("*")).collect()[0][0]  # type: ignore[no-any-return]


def _directory(spark: SparkSession, root: str) -> Path | None:
    """Returns the directory of this machine that `root` is; None if it is anything else.

    With Spark Connect, a path is one of the server's machine.
    """
    context = getattr(spark, "_jsc", None)
    if context is None:
        return None
    if root.startswith("file:"):
        return Path("/" + root.removeprefix("file:").lstrip("/"))
    default = str(context.hadoopConfiguration().get("fs.defaultFS"))
    return Path(root).absolute() if "://" not in root and default.startswith("file:") else None
