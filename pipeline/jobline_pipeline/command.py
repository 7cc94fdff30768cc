"""What every command shares: a session of Spark, the tables, progress, and short failures."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from jobline_pipeline.places import is_elsewhere
from jobline_pipeline.problems import PipelineError

if TYPE_CHECKING:
    from jobline_pipeline.store import Store


class Steps:
    """Shows what is being done: one line that changes on a terminal, a line per step elsewhere."""

    def __init__(self, progress: Progress, console: Console) -> None:
        self._progress = progress
        self._console = console
        self._task = progress.add_task("starting Spark", total=None)

    def step(self, what: str) -> None:
        """Shows the step that begins, or has just ended."""
        if self._console.is_terminal:
            self._progress.update(self._task, description=what)
        else:
            self._console.print(what)

    def note(self, what: str) -> None:
        """Shows a line that stays."""
        self._console.print(what)


@contextmanager
def steps() -> Iterator[Steps]:
    """Progress on stderr, so that a pipe carries only data."""
    console = Console(stderr=True, highlight=False, emoji=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield Steps(progress, console)


@contextmanager
def opened(tables: str, *, memory: str, must_exist: bool = True) -> Iterator[Store]:
    """The tables, with a session of Spark around them. Errors of Spark become a PipelineError."""
    if must_exist:
        _must_exist(tables)
    # Imported here: it takes a second, and a wrong path shall be told at once.
    from jobline_pipeline.session import session  # noqa: PLC0415
    from jobline_pipeline.spark_failures import SPARK_FAILURES  # noqa: PLC0415
    from jobline_pipeline.store import Store  # noqa: PLC0415

    try:
        with session(memory=memory) as spark:
            yield Store(spark, tables)
    except SPARK_FAILURES as error:
        if os.environ.get("JOBLINE_PIPELINE_DEBUG"):
            raise
        said = str(error).partition("JVM stacktrace")[0].strip().splitlines() or [
            type(error).__name__
        ]
        raise PipelineError(
            f"Spark failed: {said[0]} (JOBLINE_PIPELINE_DEBUG=1 shows where)"
        ) from error


def _must_exist(tables: str) -> None:
    if not is_elsewhere(tables) and not os.path.isdir(f"{tables}/bronze"):  # noqa: PTH112 - or a URL
        raise PipelineError(
            f"There are no tables in {tables}. Make them with: "
            f"jobline-pipeline run HISTORY --tables {tables}"
        )


def write_line(text: str) -> None:
    """Writes a line of data to stdout."""
    sys.stdout.write(text + "\n")
