"""What `jobline inspect` and `jobline verify` share: where they print, and how they fail."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobline._printable import printable
from jobline.cli.command import SERVER, Cli, error_line, reported
from jobline.cli.connection import Connection
from jobline.cli.exit_codes import Exit
from jobline.cli.options import AsJson
from jobline.cli.output import Output

if TYPE_CHECKING:
    from jobline_server.offline.opening import CannotRead, StoreFiles

PANEL = SERVER
Store = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="A data directory, or its jobline.db or finished.db.", exists=False
    ),
]
Json = AsJson


class Bars:
    """A bar on stderr for each piece of work, on a terminal and without `--json`."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._shown = ExitStack()

    def begin(self, title: str, total: int | None) -> Callable[[int], None]:
        """Begins a piece of work, which ends the one before."""
        self.end()
        return self._shown.enter_context(self._out.progress(title, total))

    def end(self) -> None:
        """Takes the last bar away, so that lines can be printed."""
        self._shown.close()


@contextmanager
def looking_at(path: Path, *, as_json: bool) -> Iterator[tuple[StoreFiles, Output, Bars]]:
    """Holds the files at a path for the length of the block; what goes wrong becomes a sentence and
    an exit code."""
    from jobline_server.offline.opening import find, held

    with reading(as_json=as_json) as (out, bars):
        files = find(path)
        with held(files):
            yield files, out, bars


@contextmanager
def reading(*, as_json: bool) -> Iterator[tuple[Output, Bars]]:
    """What goes wrong with the files that are read becomes a sentence and an exit code."""
    from jobline_server.offline.opening import CannotRead

    cli = Cli(Connection(""), as_json=as_json)
    bars = Bars(cli.out)
    with reported(cli):
        try:
            yield cli.out, bars
        except CannotRead as error:
            bars.end()
            _say(cli.out, str(error), error.advice, error)
            raise typer.Exit(_code_of(error)) from error
        except OSError as error:
            if error.filename is None:  # not of a file: what reads the output has ended
                raise
            bars.end()
            why = (error.strerror or str(error)).lower()
            _say(cli.out, f"{error.filename} cannot be read: {why}", "", error)
            raise typer.Exit(Exit.FAILED) from error
        finally:
            bars.end()


def _code_of(error: CannotRead) -> Exit:
    from jobline_server.offline.opening import Why

    codes = {
        Why.MISSING: Exit.NOT_FOUND,
        Why.FOREIGN: Exit.USAGE,
        Why.OTHER_FORMAT: Exit.REFUSED,
        Why.IN_USE: Exit.REFUSED,
    }
    return codes.get(error.why, Exit.FAILED)


def _say(out: Output, message: str, advice: str, error: Exception) -> None:
    if out.as_json:
        sys.stderr.write(error_line(message, advice, error))
        return
    out.notes.print("[bold red]error:[/] ", end="")
    out.notes.print(printable(message), markup=False, soft_wrap=True)
    if advice:
        out.notes.print(printable(advice), markup=False, soft_wrap=True)
