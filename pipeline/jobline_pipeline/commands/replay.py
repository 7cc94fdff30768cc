"""`replay`: jobs that SQL chooses are pushed again; without `--push` it only shows which."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated

import typer

from jobline_pipeline.command import opened, steps, write_line
from jobline_pipeline.command_options import TABLES, AsJson, Memory, Tables
from jobline_pipeline.places import is_elsewhere

if TYPE_CHECKING:
    from jobline_pipeline.command import Steps
    from jobline_pipeline.replay import Replay

Counts = list[tuple[str, str, int]]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(replay)


def replay(  # noqa: PLR0913, PLR0917 - one for each option of the command
    statement: Annotated[
        str, typer.Argument(help="SELECT job_id, queue FROM jobs WHERE …; also over server_jobs.")
    ],
    tables: Tables = TABLES,
    address: Annotated[
        str,
        typer.Option("--server", help="The server, HOST:PORT.", envvar="JOBLINE_SERVER"),
    ] = "localhost:7070",
    push: Annotated[bool, typer.Option("--push", help="Push them; else only count.")] = False,
    to: Annotated[str, typer.Option(help="Push all into this queue; else each into its own.")] = "",
    run_id: Annotated[
        str,
        typer.Option(
            help="Jobs of a run are pushed once; unless given, a digest of the statement."
        ),
    ] = "",
    memory: Memory = "2g",
    as_json: AsJson = False,
) -> None:
    """Push jobs again that SQL chooses over the tables and the server's own jobs.

    A dry run unless --push is given. What was cut off is repeated with the same statement, or the
    same --run-id: each job has a key of both.
    """
    has_tables = os.path.isdir(f"{tables}/bronze")  # noqa: PTH112 - or a URL
    with steps() as shown, opened(tables, memory=memory, must_exist=False) as store:
        from jobline_pipeline.replay import plan, problems, view_of_server
        from jobline_pipeline.views import create_views

        if has_tables or is_elsewhere(tables):
            create_views(store)
        with problems():
            view_of_server(store.spark, address)
        shown.step("choosing jobs")
        with problems():
            chosen = plan(store.spark, statement, address, run_id=run_id)
            counts = chosen.counts()
            if push:
                shown.step("pushing")
                chosen.push(address, queue=to)
        if as_json:
            write_line(_as_json(chosen, counts, pushed=push))
        else:
            _show(shown, chosen, counts, pushed=push, to=to)


def _as_json(chosen: Replay, counts: Counts, *, pushed: bool) -> str:
    rows = [{"queue": queue, "name": name, "jobs": jobs} for queue, name, jobs in counts]
    said = {"run_id": chosen.run_id, "pushed": pushed, "missing": chosen.missing}
    total = sum(jobs for _, _, jobs in counts)
    return json.dumps({**said, "jobs": total, "by_name": rows}, ensure_ascii=False)


def _show(shown: Steps, chosen: Replay, counts: Counts, *, pushed: bool, to: str) -> None:
    for queue, name, jobs in counts:
        write_line(f"{jobs:>10,}  {to or queue}  {name}")
    if chosen.missing:
        shown.note(f"{chosen.missing:,} more were chosen, but their payloads are gone")
    done = "pushed (once each, however often this run is repeated)" if pushed else "would be pushed"
    total = sum(jobs for _, _, jobs in counts)
    shown.note(f"{total:,} jobs {done}; run id {chosen.run_id}")
    if not pushed:
        shown.note("This was a dry run: --push pushes them.")
