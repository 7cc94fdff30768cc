"""What is known of a table before it has a row: its columns, its key, and how it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pyspark.sql import functions as F
from pyspark.sql import types as t

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

STRING, INT, LONG, DOUBLE = t.StringType(), t.IntegerType(), t.LongType(), t.DoubleType()
TIME, BOOLEAN, BINARY, DATE = t.TimestampType(), t.BooleanType(), t.BinaryType(), t.DateType()
LONGS = t.ArrayType(LONG)


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, its type and its meaning, which is shown in the documents."""

    name: str
    type: t.DataType
    meaning: str


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a layer.

    `window` is the column by whose ranges rows are made again, and `grain` how these ranges are
    rounded, in seconds: 60 or 3600. Tables without a window are appended to or replaced. Files are
    skipped by the least and greatest values of `skipped_by`, or else of the window.
    """

    name: str
    layer: Literal["bronze", "silver", "gold"]
    what: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    window: str | None = None
    grain: int = 60
    partition: str | None = None
    skipped_by: tuple[str, ...] = ()

    def schema(self) -> t.StructType:
        """Returns the schema of the table."""
        return t.StructType([t.StructField(c.name, c.type) for c in self.columns])

    def conform(self, rows: DataFrame) -> DataFrame:
        """Returns the rows with the columns of this table, in their order and of their types."""
        return rows.select([F.col(f"`{c.name}`").cast(c.type).alias(c.name) for c in self.columns])


def milliseconds(begin: str, end: str) -> SparkColumn:
    """Returns the time from one column to another in ms; NULL if either is, 0 if clocks differ."""
    passed = (F.unix_micros(end) - F.unix_micros(begin)) / F.lit(1000.0)
    return F.when(passed < 0, F.lit(0.0)).otherwise(passed)


def minute_of(column: str) -> SparkColumn:
    """Returns the begin of the minute, by integers: `date_trunc` parses its unit for each row."""
    return F.timestamp_seconds(F.floor(F.unix_seconds(F.col(column)) / 60) * 60)


def hour_of(column: str) -> SparkColumn:
    """Returns the begin of the hour."""
    return F.timestamp_seconds(F.floor(F.unix_seconds(F.col(column)) / 3600) * 3600)


def share(part: SparkColumn, whole: SparkColumn) -> SparkColumn:
    """Returns part / whole; 0 if there is no whole."""
    return F.when(whole > 0, part / whole).otherwise(F.lit(0.0))
