"""What every command shares: its connection to the server, `--json`, questions, and failures.

`command` registers a function whose first parameter is a `Cli`; in its place the command line gets
`--server` and its kin, and `--json`. Errors of the client become one sentence on stderr and an exit
code.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import typer

from jobline._printable import printable
from jobline.cli.advice import advice_for
from jobline.cli.connection import Connection
from jobline.cli.connection_options import parameters
from jobline.cli.exit_codes import Exit, UsageError, code_of
from jobline.cli.options import AsJson
from jobline.cli.output import Output, fall_silent
from jobline.errors import JoblineError, NotFound

if TYPE_CHECKING:
    from jobline import Client

P = ParamSpec("P")

# The parts of `jobline --help`.
JOBS = "Jobs"
QUEUES = "Queues and workers"
SERVER = "The server"

# How long one call may take; bulk calls on many jobs need their time.
_CALL_SECONDS = 60.0


class Cli:
    """One run of one command."""

    def __init__(self, connection: Connection, *, as_json: bool) -> None:
        self.connection = connection
        self.out = Output(as_json=as_json)
        self._client: Client | None = None

    @property
    def server(self) -> str:
        """The address of the server."""
        return self.connection.server

    @property
    def client(self) -> Client:
        """The client, connected; raises Unavailable at once if nobody listens."""
        if self._client is None:
            from jobline import Client

            client = self._client = Client(**self.connection.of_client(), timeout=_CALL_SECONDS)
            client.connect(patience=0)
        return self._client

    def now(self) -> datetime:
        """The present."""
        return datetime.now(UTC)

    def confirm(
        self, question: str, *, yes: bool, or_else: str = ", or --dry-run to count"
    ) -> None:
        """Asks before something that cannot be undone; ends the command without a yes."""
        if yes:
            return
        if not sys.stdin.isatty():
            raise UsageError(f"{question} There is nobody to ask: add --yes{or_else}.")
        if not typer.confirm(question, err=True):
            self.out.note("Nothing was changed.")
            raise typer.Exit(Exit.FAILED)

    def close(self) -> None:
        """Ends the connection."""
        if self._client is not None:
            self._client.close()


def command(
    app: typer.Typer,
    name: str,
    connected: Sequence[inspect.Parameter] = tuple(parameters()),
    **settings: Any,
) -> Callable[[Callable[Concatenate[Cli, P], None]], Callable[Concatenate[Cli, P], None]]:
    """Registers a function of a `Cli` and options as a command."""

    def register(
        function: Callable[Concatenate[Cli, P], None],
    ) -> Callable[Concatenate[Cli, P], None]:
        app.command(name, **settings)(_exposed(function, connected))
        return function

    return register


def _exposed(
    function: Callable[..., None], connected: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """The function as typer sees it: `--server`, its kin and `--json` in the place of the `Cli`."""

    def run(*, as_json: bool, **given: Any) -> None:
        connection = Connection(**{one.name: given.pop(one.name) for one in connected})
        cli = Cli(connection, as_json=as_json)
        with reported(cli):
            function(cli, **given)

    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    keyword = inspect.Parameter.KEYWORD_ONLY
    shown = [parameter.replace(kind=keyword) for parameter in own]
    shown.append(inspect.Parameter("as_json", keyword, default=False, annotation=AsJson))
    shown += connected
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]  # read by inspect
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    run.__name__, run.__doc__ = function.__name__, flowing(function.__doc__ or "")
    return run


def flowing(text: str) -> str:
    """Each paragraph on one line, for typer keeps the line breaks of all but the first."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(one.replace("\n", " ") for one in paragraphs)


@contextmanager
def reported(cli: Cli) -> Iterator[None]:
    """Turns what goes wrong into a sentence and an exit code, and closes the client."""
    try:
        yield
    except JoblineError as error:
        code = code_of(error)
        _report(cli, sentence_of(error), advice_for(error, cli.connection), error)
        raise typer.Exit(code) from error
    except UsageError as mistake:
        _report(cli, str(mistake), "", mistake)
        raise typer.Exit(Exit.USAGE) from mistake
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None
    except BrokenPipeError:  # the reader of the pipe has closed it
        fall_silent()
        raise typer.Exit(Exit.OK) from None
    except OSError as error:
        fall_silent()
        _report(cli, str(error), "What was asked for may be done all the same.", error)
        raise typer.Exit(Exit.FAILED) from error
    finally:
        cli.close()


def sentence_of(error: JoblineError) -> str:
    """What is wrong. That something is not there needs no field: the command line has no fields."""
    if isinstance(error, NotFound) and error.field is not None:
        return error.message.removeprefix(f"{error.field}: ")
    return error.message


def _report(cli: Cli, message: str, advice: str, error: Exception) -> None:
    if cli.out.as_json:
        sys.stderr.write(error_line(message, advice, error))
        return
    cli.out.notes.print("[bold red]error:[/] ", end="")
    cli.out.notes.print(printable(message), markup=False, soft_wrap=True)
    if advice:
        cli.out.notes.print(printable(advice), markup=False, soft_wrap=True)


def error_line(message: str, advice: str, error: Exception) -> str:
    """An error as a line of JSON; all keys are always there."""
    known = error if isinstance(error, JoblineError) else JoblineError(message)
    document = {
        "message": message,
        "advice": advice,
        "kind": type(error).__name__,
        "reason": known.reason,
        "code": known.code,
        "field": known.field,
        "retry_after": known.retry_after,
    }
    return json.dumps({"error": document}) + "\n"
