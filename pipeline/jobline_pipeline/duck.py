"""DuckDB in this process, with the functions of Spark that the tables are made with.

Sketches of both engines are those of Apache DataSketches, whose bytes depend on no language.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import RLock
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from datasketches import kll_floats_sketch
from duckdb.func import FunctionNullHandling, PythonUDFType

# As Spark makes them, unless told otherwise.
_SKETCH_K = 200

# What DuckDB calls by another name, or takes NULLs for something else in.
_MACROS = (
    "count_if(condition) AS count(*) FILTER (WHERE condition)",
    "unix_micros(time) AS epoch_us(time)",
    "unix_seconds(time) AS epoch_us(time) // 1000000",
    "timestamp_seconds(seconds) AS to_timestamp(seconds)",
    "max_by(value, place) AS arg_max_null(value, place)",
    "explode(items) AS unnest(items)",
    "kll_sketch_agg_float(value) AS kll_of_list(list(value))",
)
# Types of Spark that DuckDB has under another name.
_TYPES = {"timestamp": "TIMESTAMPTZ", "array<bigint>": "BIGINT[]", "array<string>": "VARCHAR[]"}
_TYPES["map<string,string>"] = "MAP(VARCHAR, VARCHAR)"


class Duck:
    """A database in memory, which is gone when it is closed.

    One query runs at a time, on all cores; `memory` is a limit as Java writes it (`4g`), beyond
    which it goes on in a temporary directory.
    """

    def __init__(self, memory: str) -> None:
        self._duck = duckdb.connect()
        self._lock = RLock()
        self._names = count()
        self._defined: set[str] = set()
        scratch = (os.environ.get("SPARK_LOCAL_DIRS") or tempfile.gettempdir()).partition(",")[0]
        self._set("temp_directory", f"{scratch}/jobline-pipeline-{os.getpid()}")
        self._set("memory_limit", f"{memory.lower().rstrip('b')}B")
        self._set("TimeZone", "UTC")
        self._set("preserve_insertion_order", "false")
        self.define("kll_of_list", _sketches, ("FLOAT[]",), "BLOB", of_arrow=True)
        self.define("kll_sketch_get_n_float", _size, ("BLOB",), "BIGINT")
        self.define("kll_sketch_get_quantile_float", _quantile, ("BLOB", "DOUBLE"), "FLOAT")
        for macro in _MACROS:
            self._duck.execute(f"CREATE MACRO {macro}")

    def close(self) -> None:
        """Ends it; what it keeps is gone."""
        self._duck.close()

    def define(
        self,
        name: str,
        function: Callable[..., Any],
        takes: Sequence[str],
        gives: str,
        *,
        of_arrow: bool = False,
    ) -> None:
        """Adds a function in Python: of each row without NULLs, or of arrays of Arrow."""
        with self._lock:
            if name in self._defined:
                return
            self._defined.add(name)
            self._duck.create_function(
                name,
                function,
                list(takes),
                gives,
                type=PythonUDFType.ARROW if of_arrow else PythonUDFType.NATIVE,
                null_handling=(
                    FunctionNullHandling.SPECIAL if of_arrow else FunctionNullHandling.DEFAULT
                ),
            )

    def files(self, columns: Mapping[str, str], files: Sequence[Path], date: str | None) -> Query:
        """Returns the rows of Parquet files, with columns of these types of Spark; a column that
        no file has is NULL. `date` is the column that is in their paths.
        """
        typed = ", ".join(f'CAST(NULL AS {type_of(kind)}) AS "{c}"' for c, kind in columns.items())
        text = f"SELECT {typed} WHERE false"
        if files:
            listed = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
            where = "hive_partitioning=false"
            if date:
                where = f"hive_partitioning=true, hive_types={{'{date}': DATE}}"
            text += (
                " UNION ALL BY NAME SELECT * FROM "
                f"read_parquet([{listed}], union_by_name=true, {where})"
            )
        return self._named("VIEW", text)

    def arrow(self, rows: pa.Table) -> Query:
        """Returns the rows of a table of this process."""
        name = f"rows_{next(self._names)}"
        with self._lock:
            self._duck.register(name, rows)
        return Query(self, f"SELECT * FROM {name}")

    def kept(self, rows: Query) -> Query:
        """Computes rows once, and keeps them."""
        return self._named("TABLE", rows.text)

    def write(self, rows: Query, folder: Path, name: str, date: str) -> list[str]:
        """Writes rows as Parquet, a directory for each `date`; returns the paths in the folder.

        `name` is that of the files, with an `{i}` in it.
        """
        folder.mkdir(parents=True, exist_ok=True)
        options = (
            f'FORMAT parquet, COMPRESSION zstd, PARTITION_BY ("{date}"), OVERWRITE_OR_IGNORE, '
            f"FILENAME_PATTERN '{name}', RETURN_FILES"
        )
        quoted = str(folder).replace("'", "''")
        done = self.run(f"COPY ({rows.text}) TO '{quoted}' ({options})")
        return [str(Path(file).relative_to(folder)) for file in done["Files"][0].as_py()]

    def query(self, text: str, sources: Mapping[str, Query]) -> Query:
        """Returns the rows of a query over `{sources}`."""
        inner = {name: f"({rows.text})" for name, rows in sources.items()}
        return Query(self, text.replace("`", '"').format(**inner))

    def run(self, text: str) -> pa.Table:
        """Runs a statement; returns its rows."""
        with self._lock:
            return self._duck.sql(text).to_arrow_table()

    def _named(self, kind: str, text: str) -> Query:
        name = f"rows_{next(self._names)}"
        with self._lock:
            self._duck.execute(f"CREATE {kind} {name} AS {text}")
        return Query(self, f"SELECT * FROM {name}")

    def _set(self, option: str, value: str) -> None:
        quoted = value.replace("'", "''")
        self._duck.execute(f"SET {option} = '{quoted}'")


@dataclass(frozen=True, slots=True)
class Query:
    """Rows that DuckDB computes when they are asked for."""

    duck: Duck
    text: str

    def filter(self, condition: str) -> Query:
        """Returns the rows for which a condition holds."""
        return self.duck.query(f"SELECT * FROM {{rows}} WHERE {condition}", {"rows": self})

    def arrow(self) -> pa.Table:
        """Returns the rows."""
        return self.duck.run(self.text)


def type_of(spark: str) -> str:
    """Returns DuckDB's name of a type of Spark."""
    return _TYPES.get(spark, spark)


def _sketches(lists: Iterable[pa.ListScalar]) -> pa.Array:
    """Returns a sketch of each list."""
    made = []
    for one in lists:
        sketch = kll_floats_sketch(_SKETCH_K)
        if one.values is not None:
            sketch.update(np.array(one.values.drop_null()))
        made.append(sketch.serialize())
    return pa.array(made, pa.binary())


def _size(sketch: bytes) -> int:
    return int(kll_floats_sketch.deserialize(sketch).n)


def _quantile(sketch: bytes, rank: float) -> float:
    return float(kll_floats_sketch.deserialize(sketch).get_quantile(rank, inclusive=True))
