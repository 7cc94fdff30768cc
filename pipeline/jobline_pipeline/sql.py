"""What the tables are, said once in SQL that two engines run: Spark, and DuckDB (`local`).

Both understand most of it, DuckDB by macros with names of Spark's functions (`duck`). What they
say differently is a method of `Dialect`. Names that are words of either language stand in
backticks; numbers that are not whole have an exponent, as they are decimals in Spark otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar, cast

from jobline_pipeline.duck import Query, type_of


class Filtered(Protocol):
    """Rows of either engine, which are computed when they are asked for: DataFrame or Query."""

    def filter(self, condition: str, /) -> Self:
        """Returns the rows for which a condition holds."""


Rows = TypeVar("Rows", bound=Filtered)


@dataclass(frozen=True, slots=True)
class Function:
    """A function that neither engine has: an expression for Spark, and Python for DuckDB, which
    is called for each row without NULLs. `takes` and `gives` are types of DuckDB.
    """

    name: str
    spark: Callable[..., str]
    python: Callable[..., Any]
    takes: tuple[str, ...]
    gives: str


class Dialect:
    """What Spark says; all take and return expressions."""

    def type(self, spark: str) -> str:
        """Returns the name of a type of Spark."""
        return spark

    def text(self, text: str) -> str:
        """Returns any text as a literal."""
        return _braced("'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'")

    def array(self, *items: str) -> str:
        """Returns an array."""
        return f"array({', '.join(items)})"

    def without_nulls(self, array: str) -> str:
        """Returns an array without its NULLs."""
        return f"array_compact({array})"

    def words(self, text: str) -> str:
        """Aggregates texts: the different ones, sorted, with commas between."""
        return f"array_join(array_sort(collect_set({text})), ', ')"

    def greatest(self, value: str, key: str, count: int) -> str:
        """Aggregates keys: an array of those with the greatest values, these first. None of both
        is NULL.
        """
        pairs = f"collect_list(named_struct('value', {value}, 'key', {key}))"
        return f"slice(sort_array({pairs}, false), 1, {count}).key"

    def call(self, function: Function, *given: str) -> str:
        """Returns what a function of ours returns."""
        return function.spark(*given)


class DuckDialect(Dialect):
    """What DuckDB says instead."""

    # ruff: noqa: D102 - see there

    def __init__(self, rows: Query) -> None:
        self._duck = rows.duck

    def type(self, spark: str) -> str:
        return type_of(spark)

    def text(self, text: str) -> str:
        # A backtick is a quote of names here.
        return _braced("'" + text.replace("'", "''").replace("`", "' || chr(96) || '") + "'")

    def array(self, *items: str) -> str:
        return f"[{', '.join(items)}]"

    def without_nulls(self, array: str) -> str:
        return f"list_filter({array}, lambda item: item IS NOT NULL)"

    def words(self, text: str) -> str:
        return f"string_agg(DISTINCT {text}, ', ' ORDER BY {text})"

    def greatest(self, value: str, key: str, count: int) -> str:
        return f"coalesce(list({key} ORDER BY {value} DESC, {key} DESC)[:{count}], [])"

    def call(self, function: Function, *given: str) -> str:
        self._duck.define(function.name, function.python, function.takes, function.gives)
        return f"{function.name}({', '.join(given)})"


def dialect_of(rows: Filtered) -> Dialect:
    """Returns the dialect of the engine that has the rows."""
    return DuckDialect(rows) if isinstance(rows, Query) else Dialect()


def query(text: str, **sources: Rows) -> Rows:
    """Returns the rows of a query over `{sources}`, all of one engine."""
    given: dict[str, Any] = sources
    first = next(iter(given.values()))
    if isinstance(first, Query):
        return cast("Rows", first.duck.query(text, given))
    return cast("Rows", first.sparkSession.sql(text, **given))


def one_of(words: Sequence[str]) -> str:
    """Returns what follows IN, of plain words."""
    return f"({', '.join(repr(word) for word in words)})"


def _braced(text: str) -> str:
    """Returns what `query` shall not take for a source."""
    return text.replace("{", "{{").replace("}", "}}")


def milliseconds(begin: str, end: str) -> str:
    """Returns the time from one to another in ms; NULL if either is, 0 if clocks differ."""
    passed = f"(unix_micros({end}) - unix_micros({begin})) / 1e3"
    return f"CASE WHEN {passed} < 0 THEN 0e0 ELSE {passed} END"


def minute_of(time: str) -> str:
    """Returns the begin of the minute, by numbers: `date_trunc` of Spark parses its unit for each
    row.
    """
    return f"timestamp_seconds(floor(unix_seconds({time}) / 60) * 60)"


def hour_of(time: str) -> str:
    """Returns the begin of the hour."""
    return f"timestamp_seconds(floor(unix_seconds({time}) / 3600) * 3600)"


def share(part: str, whole: str) -> str:
    """Returns part / whole; 0 if there is no whole."""
    return f"CASE WHEN {whole} > 0 THEN {part} / {whole} ELSE 0e0 END"


def quantile(sketch: str, rank: float) -> str:
    """Returns a quantile of a sketch; NULL where nothing was measured."""
    found = f"kll_sketch_get_quantile_float({sketch}, {rank:e})"
    return f"CASE WHEN kll_sketch_get_n_float({sketch}) > 0 THEN CAST({found} AS double) END"
