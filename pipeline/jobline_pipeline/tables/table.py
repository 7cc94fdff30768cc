"""What is known of a table before it has a row: its columns, its key, and how it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pyspark.sql import functions as F
from pyspark.sql import types as t

from jobline_pipeline.sql import dialect_of, query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from jobline_pipeline.sql import Rows

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
    rounded, in seconds: 60 or 3600. Tables without a window are appended to or replaced.
    """

    name: str
    layer: Literal["bronze", "silver", "gold"]
    what: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    window: str | None = None
    grain: int = 60
    partition: str | None = None

    def schema(self) -> t.StructType:
        """Returns the schema of the table."""
        return t.StructType([t.StructField(c.name, c.type) for c in self.columns])

    def made(self, text: str, **sources: Rows) -> Rows:
        """Returns the rows of a query (see `sql.query`), with the columns of this table."""
        say = dialect_of(next(iter(sources.values())))
        typed = ((c.name, say.type(c.type.simpleString())) for c in self.columns)
        casts = ", ".join(f"CAST(`{name}` AS {kind}) AS `{name}`" for name, kind in typed)
        return query(f"SELECT {casts} FROM ({text}) AS made", **sources)

    def conform(self, rows: DataFrame) -> DataFrame:
        """Returns the rows with the columns of this table, in their order and of their types."""
        # By name: a type itself goes over Spark Connect with a collation, which Delta Lake keeps.
        typed = ((c.name, c.type.simpleString()) for c in self.columns)
        return rows.select([F.col(f"`{name}`").cast(kind).alias(name) for name, kind in typed])
