"""`optimize`, `vacuum` and `retain`: keep the tables small and quick."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from jobline_pipeline.command import opened, steps
from jobline_pipeline.command_options import TABLES, Memory, Tables


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(optimize)
    app.command()(vacuum)
    app.command()(retain)


def optimize(tables: Tables = TABLES, memory: Memory = "4g") -> None:
    """Join small files of the tables: a stream writes many."""
    with steps() as shown, opened(tables, memory=memory) as store:
        from jobline_pipeline.upkeep import optimize as join_files

        for name, before, after in join_files(store, shown.step):
            shown.note(f"{name}: {before} files are {after} now")


def vacuum(
    tables: Tables = TABLES,
    hours: Annotated[
        int, typer.Option(min=0, help="Keep what readers and time travel need of the last hours.")
    ] = 168,
    memory: Memory = "4g",
) -> None:
    """Delete files that no version of a table of the last hours needs."""
    with steps() as shown, opened(tables, memory=memory) as store:
        from jobline_pipeline.upkeep import vacuum as delete_files

        delete_files(store, hours, shown.step)
        shown.note("Files that nobody needs any more were deleted.")


def retain(
    days: Annotated[int, typer.Option(min=1, help="Keep rows of this many days.")],
    tables: Tables = TABLES,
    gold_days: Annotated[
        int | None, typer.Option(min=1, help="Keep rows of gold tables for longer.")
    ] = None,
    memory: Memory = "4g",
) -> None:
    """Delete old rows: of bronze and silver tables after DAYS, of gold ones after GOLD_DAYS."""
    with steps() as shown, opened(tables, memory=memory) as store:
        from jobline_pipeline.upkeep import retain as delete_rows

        now = datetime.now(UTC)
        before = now - timedelta(days=days)
        before_gold = now - timedelta(days=gold_days or days)
        for name, deleted in delete_rows(store, before, before_gold, shown.step):
            shown.note(f"{name}: {deleted:,} rows were deleted")
