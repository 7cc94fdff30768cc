"""`python -m jobline_server.cli.demo [DIR]`, or `make demo DIR=…`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from jobline_server.cli.demo.play import Cast, play
from jobline_server.cli.demo.processes import DemoFailed
from jobline_server.cli.demo.screen import say_failure


def main(  # one argument per option of the command
    tree: Annotated[Path, typer.Argument(metavar="[DIR]", help="The files to checksum.")] = Path(),
    *,
    workers: Annotated[int, typer.Option(min=2, help="Worker processes.")] = 4,
    concurrency: Annotated[int, typer.Option(min=1, help="Files at a time per worker.")] = 2,
    pace: Annotated[
        float | None,
        typer.Option(min=0, help="Least seconds per file. Unset: a few seconds in all."),
    ] = None,
    kill_server: Annotated[
        bool, typer.Option("--kill-server", help="Also kill -9 the server, and start it again.")
    ] = False,
    keep: Annotated[
        Path | None, typer.Option(help="Keep data, logs and journal in this directory.")
    ] = None,
) -> None:
    """Checksum a directory through a Jobline server and its workers, killing one half-way.

    Ends with 0 if every file was done and every checksum is right, else with 1.
    """
    cast = Cast(workers=workers, concurrency=concurrency, pace=pace, kills_server=kill_server)
    with tempfile.TemporaryDirectory(prefix="jobline-demo-") as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            is_right = play(tree.resolve(), folder, cast)
        except DemoFailed as failure:
            say_failure(str(failure), folder)
            is_right = False
    raise typer.Exit(0 if is_right else 1)


if __name__ == "__main__":
    typer.run(main)
