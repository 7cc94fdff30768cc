"""Reads the statements in `sql/`: each follows a line `-- name:` and a sentence about it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

# Rows per statement of `insert_many`. Each statement releases Python's lock once, so more rows are
# faster; but a prepared statement takes memory for each row.
ROWS_PER_STATEMENT = 200

_HEADER = re.compile(r"^-- name: (?P<name>\w+)$", re.MULTILINE)
_TUPLE = re.compile(r"VALUES (\((?:\?, )*\?\))")


def script(name: str) -> str:
    """Returns a whole file of `sql/`."""
    return files(__package__).joinpath("sql", name).read_text("utf-8")


def load(name: str) -> Mapping[str, str]:
    """Returns the statements of a file of `sql/` by name, without comments and final semicolons."""
    parts = _HEADER.split(script(name))
    statements = {}
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        lines = (line for line in text.strip().splitlines() if not line.startswith("--"))
        statements[title] = "\n".join(lines).strip().removesuffix(";")
    return MappingProxyType(statements)


@lru_cache(maxsize=1_024)
def repeated(statement: str, times: int) -> str:
    """Returns the statement with its one row of VALUES repeated."""
    match = _TUPLE.search(statement)
    if match is None:
        raise ValueError(f"no row of VALUES to repeat in: {statement}")
    row = match.group(1)
    return statement[: match.start(1)] + ", ".join([row] * times) + statement[match.end(1) :]


def insert_many(
    connection: sqlite3.Connection,
    statement: str,
    rows: Sequence[Sequence[Any]],
    *after: Any,
) -> None:
    """Runs a statement with all rows as its VALUES, many at a time; `after` are the parameters that
    follow them."""
    for start in range(0, len(rows), ROWS_PER_STATEMENT):
        chunk = rows[start : start + ROWS_PER_STATEMENT]
        parameters = [value for row in chunk for value in row]
        connection.execute(repeated(statement, len(chunk)), [*parameters, *after])
