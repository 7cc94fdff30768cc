"""Options of `jobline work`, as `options` has those of other commands."""

from __future__ import annotations

from typing import Annotated

import typer

from jobline.cli.options import flag, span

Arguments = Annotated[
    list[str] | None, typer.Argument(metavar="-- COMMAND", help="A command and its arguments.")
]
ShellLine = Annotated[str, typer.Option("--shell", metavar="LINE", help="A line for /bin/sh.")]
Function = Annotated[
    str, typer.Option("--function", metavar="MODULE:NAME", help="A Python function.")
]
Concurrency = Annotated[
    int,
    typer.Option("--concurrency", "-c", min=1, metavar="N", help="So many jobs at the same time."),
]
Result = Annotated[bool, flag("--result", help="Keep stdout as the job's result.")]
Quiet = Annotated[bool, flag("--quiet", "-q", help="No line for each job.")]
Patience = Annotated[
    float | None,
    typer.Option(
        "--exit-when-idle",
        parser=span,
        metavar="TIME",
        help="End when nothing came for so long.",
    ),
]
