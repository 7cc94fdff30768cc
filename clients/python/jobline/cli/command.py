"""What every command shares: the server it speaks to, `--json`, questions, and how it fails.

`command` registers a function whose first parameter is a `Cli`; in its place the command line gets
`--server` and `--json`. Errors of the client become one sentence on stderr and an exit code.
"""

from __future__ import annotations

import inspect
import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import typer

from jobline.cli.exits import Exit, Mistake, code_of
from jobline.cli.options import SERVER_DEFAULT, AsJson, Server
from jobline.cli.output import Output, printable
from jobline.errors import JoblineError, Unavailable

if TYPE_CHECKING:
    from jobline import Client

P = ParamSpec("P")

# How long one call may take; bulk calls on many jobs need their time.
_CALL_SECONDS = 60.0
_CONNECT_SECONDS = 5.0


class Cli:
    """One run of one command."""

    def __init__(self, server: str, *, as_json: bool) -> None:
        self.server = server
        self.out = Output(as_json=as_json)
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """The client, connected; raises Unavailable at once if nobody listens."""
        if self._client is None:
            from jobline import Client

            reach(self.server)
            self._client = Client(self.server, timeout=_CALL_SECONDS)
        return self._client

    def now(self) -> datetime:
        """The present."""
        return datetime.now(UTC)

    def confirm(self, question: str, *, yes: bool) -> None:
        """Asks before something that cannot be undone; ends the command without a yes."""
        if yes:
            return
        if not sys.stdin.isatty():
            raise Mistake(f"{question} There is nobody to ask: add --yes, or --dry-run to count.")
        if not typer.confirm(question, err=True):
            self.out.note("Nothing was changed.")
            raise typer.Exit(Exit.FAILED)

    def close(self) -> None:
        """Ends the connection."""
        if self._client is not None:
            self._client.close()


def reach(server: str) -> None:
    """Raises Unavailable if nobody listens there.

    gRPC itself would try again and again until the call's time is over, and its own way to watch a
    connection makes every command 0.2 s slower. Targets that are not plain addresses are left to
    gRPC.
    """
    try:
        if server.startswith("unix:"):
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(_CONNECT_SECONDS)
                probe.connect(server.removeprefix("unix:").removeprefix("//"))
            return
        host, _, port = server.rpartition(":")
        if host and port.isdecimal() and "/" not in host:
            address = (host.strip("[]"), int(port))
            socket.create_connection(address, timeout=_CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise Unavailable(f"cannot connect to {server}: {error}") from None


def command(
    app: typer.Typer, name: str, **settings: Any
) -> Callable[[Callable[Concatenate[Cli, P], None]], Callable[Concatenate[Cli, P], None]]:
    """Registers a function of a `Cli` and options as a command."""

    def register(
        function: Callable[Concatenate[Cli, P], None],
    ) -> Callable[Concatenate[Cli, P], None]:
        app.command(name, **settings)(_exposed(function))
        return function

    return register


def _exposed(function: Callable[..., None]) -> Callable[..., None]:
    """The function as typer sees it: `--server` and `--json` in the place of the `Cli`."""

    def run(*, server: str, as_json: bool, **given: Any) -> None:
        cli = Cli(server, as_json=as_json)
        with reported(cli):
            function(cli, **given)

    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    keyword = inspect.Parameter.KEYWORD_ONLY
    shown = [parameter.replace(kind=keyword) for parameter in own]
    shown += [
        inspect.Parameter("server", keyword, default=SERVER_DEFAULT, annotation=Server),
        inspect.Parameter("as_json", keyword, default=False, annotation=AsJson),
    ]
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]  # read by inspect
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    return run


@contextmanager
def reported(cli: Cli) -> Iterator[None]:
    """Turns what goes wrong into a sentence and an exit code, and closes the client."""
    try:
        yield
    except JoblineError as error:
        code = code_of(error)
        _report(cli, error.message, advice_for(error, cli.server), error)
        raise typer.Exit(code) from error
    except Mistake as mistake:
        _report(cli, str(mistake), "")
        raise typer.Exit(Exit.USAGE) from mistake
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None
    except BrokenPipeError:
        # Who read the pipe has enough; without this the interpreter complains while it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(Exit.OK) from None
    finally:
        cli.close()


def advice_for(error: JoblineError, server: str) -> str:
    """What to do about an error."""
    if isinstance(error, Unavailable) and not error.reason:
        return (
            f"No server answers at {server}. Start one with `jobline serve --data ./jobline-data` "
            "(or `jobline dev` to try things), or name another with --server or JOBLINE_SERVER."
        )
    if error.retry_after is not None:
        return f"Try again in {error.retry_after:g} s."
    return ""


def _report(cli: Cli, message: str, advice: str, error: JoblineError | None = None) -> None:
    if not cli.out.as_json:
        cli.out.notes.print("[bold red]error:[/] ", end="")
        cli.out.notes.print(printable(message), markup=False, soft_wrap=True)
        if advice:
            cli.out.notes.print(printable(advice), markup=False, soft_wrap=True)
        return
    said: dict[str, Any] = {"message": message, "advice": advice}
    if error is not None:
        said |= {"kind": type(error).__name__, "reason": error.reason, "code": error.code}
        said |= {"field": error.field, "retry_after": error.retry_after}
    sys.stderr.write(json.dumps({"error": said}) + "\n")
