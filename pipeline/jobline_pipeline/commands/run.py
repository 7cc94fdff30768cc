"""`run` and `stream`: bring the tables up to date, once or for as long as the command runs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobline_pipeline.command import Steps, opened, steps, write_line
from jobline_pipeline.command_options import TABLES, AsJson, History, Memory, Tables
from jobline_pipeline.places import is_elsewhere
from jobline_pipeline.problems import PipelineError

if TYPE_CHECKING:
    from jobline_pipeline.ingest import Counts
    from jobline_pipeline.stream import Following
    from jobline_pipeline.tables.slo import Objective

Objectives = Annotated[
    Path | None,
    typer.Option(
        "--objectives",
        help="A file of objectives (TOML); `objectives.toml` of the tables if there is one.",
    ),
]
FilesABatch = Annotated[int, typer.Option(min=1, help="How many files one batch reads.")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(run)
    app.command()(stream)


def run(
    history: History,
    tables: Tables = TABLES,
    objectives: Objectives = None,
    files_a_batch: FilesABatch = 2000,
    memory: Memory = "4g",
    as_json: AsJson = False,
) -> None:
    """Read all new files of a history into the tables, and end."""
    _follow(history, tables, objectives, files_a_batch, None, memory, as_json)


def stream(
    history: History,
    tables: Tables = TABLES,
    every: Annotated[str, typer.Option(help="How often to look for new files.")] = "1 minute",
    objectives: Objectives = None,
    files_a_batch: FilesABatch = 2000,
    memory: Memory = "4g",
    as_json: AsJson = False,
) -> None:
    """Read new files of a history into the tables as they come, until interrupted."""
    _follow(history, tables, objectives, files_a_batch, every, memory, as_json)


def _follow(
    history: str,
    tables: str,
    objectives: Path | None,
    files_a_batch: int,
    every: str | None,
    memory: str,
    as_json: bool,
) -> None:
    from jobline_pipeline.stream import Following, events_of

    events_of(history)
    declared = _declared(objectives, tables)
    what = Following(history, every, files_a_batch, declared)
    # Spark computes little where the tables are in a directory.
    short = every is None and not is_elsewhere(tables)
    with steps() as shown, opened(tables, memory=memory, must_exist=False, short=short) as store:
        total = _wait(what, store, shown, as_json=as_json)
    if not total and not as_json:
        shown.note("There was nothing new.")


def _wait(what: Following, store: object, shown: Steps, *, as_json: bool) -> int:
    from pyspark.errors import StreamingQueryException

    from jobline_pipeline.store import Store
    from jobline_pipeline.stream import follow, wait

    assert isinstance(store, Store)  # noqa: S101 - named as object: Spark is imported late
    batches = 0

    def done(number: int, counts: Counts) -> None:
        nonlocal batches
        batches += 1
        if as_json:
            write_line(json.dumps({"batch": number, **asdict(counts)}))
        else:
            shown.note(_said(number, counts))

    query = follow(store, what, tell=shown.step, done=done)
    try:
        wait(query, store, done)
    except StreamingQueryException as error:
        last = [
            line for line in str(error).splitlines() if "Error:" in line or "Exception:" in line
        ]
        raise PipelineError(f"A batch failed: {last[-1] if last else error}") from error
    finally:
        query.stop()
    return batches


def _said(number: int, counts: Counts) -> str:
    said = f"batch {number}: {counts.rows:,} events of {counts.taken} files"
    for count, what in (
        (counts.repeated, "repeated files left out"),
        (counts.bad, "bad files set apart (see the table `files`)"),
        (counts.rows_apart, "rows set apart"),
    ):
        said += f", {count} {what}" if count else ""
    return said


def _declared(path: Path | None, tables: str) -> list[Objective]:
    from jobline_pipeline.tables.slo import read_objectives

    if path is None:
        path = Path(tables, "objectives.toml")
        if "://" in tables or not path.is_file():
            return []
    return read_objectives(path)
