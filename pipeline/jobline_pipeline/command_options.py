"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

TABLES = "jobline-tables"

Tables = Annotated[
    str,
    typer.Option(
        "--tables",
        "-t",
        help="The directory of the tables, or a URL that Spark knows.",
        envvar="JOBLINE_PIPELINE_TABLES",
    ),
]
History = Annotated[
    str,
    typer.Argument(
        help="What the server exports to: the directory, or URL, in which `events` is.",
        envvar="JOBLINE_PIPELINE_HISTORY",
    ),
]
Memory = Annotated[
    str,
    typer.Option("--memory", help="The heap of Spark in this process; as much is for DuckDB."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
