"""The command line `jobline-pipeline`: its commands put together, and how they end.

Each module of `commands/` has `register(app)`. A command raises PipelineError for what the user can
put right; it is printed as one sentence, without a traceback.
"""

from __future__ import annotations

import os
import pkgutil
import sys
from importlib import import_module
from typing import Annotated

import typer

from jobline.cli.version import version_option
from jobline_pipeline import commands
from jobline_pipeline.problems import PipelineError

# As those of `jobline`: done, failed, the command line is wrong, interrupted.
FAILED = 1
INTERRUPTED = 130


def build() -> typer.Typer:
    """Returns the whole command line."""
    app = typer.Typer(
        name="jobline-pipeline",
        help="Make tables and reports of the history that a Jobline server exported.",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for module in sorted(found.name for found in pkgutil.iter_modules(commands.__path__)):
        import_module(f"jobline_pipeline.commands.{module}").register(app)
    return app


def main() -> None:
    """The console script; also what spark-submit runs."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        build()(prog_name="jobline-pipeline")
    except PipelineError as problem:
        print(f"jobline-pipeline: {problem}", file=sys.stderr)
        sys.exit(FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _root(
    _version: Annotated[bool, version_option("jobline-pipeline", "pyspark", "delta-spark")] = False,
) -> None:
    """Make tables and reports of the history that a Jobline server exported."""


if __name__ == "__main__":
    main()
