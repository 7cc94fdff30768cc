"""`sql`: statements over the tables, one or a prompt for many."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from jobline_pipeline.command import opened, steps, write_line
from jobline_pipeline.command_options import TABLES, AsJson, Memory, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_SHOWN = 100


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(sql)


def sql(
    statement: Annotated[
        str | None, typer.Argument(help="A statement; none opens a prompt.")
    ] = None,
    tables: Tables = TABLES,
    limit: Annotated[int, typer.Option(min=1, help="How many rows to show.")] = ROWS_SHOWN,
    memory: Memory = "2g",
    as_json: AsJson = False,
) -> None:
    """Ask the tables in SQL. Every table is a view, and so are queue_hours, queue_backlog and
    version_comparison.
    """
    with steps() as shown, opened(tables, memory=memory) as store:
        from jobline_pipeline.views import create_views

        names = create_views(store)
        if statement is not None:
            shown.step("running the statement")
            _show(store.spark.sql(statement), limit, as_json=as_json)
            return
        shown.step("")
        shown.note("Views: " + ", ".join(names))
        _prompt(store.spark, limit, as_json=as_json)


def _prompt(spark: SparkSession, limit: int, *, as_json: bool) -> None:
    """Reads statements until the end of the input; one that fails does not end it."""
    from jobline_pipeline.spark_failures import SPARK_FAILURES

    while True:
        try:
            statement = input("sql> " if sys.stdin.isatty() else "").strip().rstrip(";")
        except EOFError:
            return
        if statement in {"quit", "exit"}:
            return
        if statement:
            try:
                _show(spark.sql(statement), limit, as_json=as_json)
            except SPARK_FAILURES as error:
                print(str(error).partition("\n")[0], file=sys.stderr)


def _show(rows: DataFrame, limit: int, *, as_json: bool) -> None:
    if as_json:
        for row in rows.limit(limit).collect():
            write_line(json.dumps(row.asDict(recursive=True), default=str, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table

    shown = rows.limit(limit + 1).collect()
    table = Table(*rows.columns, box=None, pad_edge=False)
    for row in shown[:limit]:
        table.add_row(*("" if value is None else str(value) for value in row))
    Console(emoji=False, highlight=False, markup=False).print(table)
    if len(shown) > limit:
        print(f"More than {limit} rows; --limit shows more.", file=sys.stderr)
