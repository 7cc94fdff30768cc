"""The command `jobline`: its nouns and verbs put together, and those that a server adds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated

import typer

from jobline._installing import how_to_install
from jobline._interrupts import raise_interrupts
from jobline.cli import (
    audit,
    backup,
    batches,
    bench,
    dead,
    doctor,
    exit_codes,
    flows,
    groups,
    handlers,
    jobs,
    limiters,
    push,
    queues,
    schedules,
    server,
    tail,
    top,
    webhooks,
    work,
)
from jobline.cli.command import SERVER, error_line
from jobline.cli.nouns import give_hints
from jobline.cli.output import fall_silent, speak_narrow
from jobline.cli.version import version_option

GROUP = "jobline.commands"
# Commands of the server distribution; without it they explain how to install it.
SERVER_COMMANDS = {
    "serve": "run a server",
    "dev": "run a server to try things",
    "auth": "make API keys, and check the file of keys and roles",
    "inspect": "see what is in the files of a server",
    "verify": "check the files of a server",
    "restore": "make a data directory of a backup",
}
_INSTALL = f"install jobline-server {how_to_install('jobline-server', 'native')}"


def build() -> typer.Typer:
    """The whole command line."""
    app = typer.Typer(
        name="jobline",
        help="Push jobs, work on them, and look after the queues of a Jobline server.",
        epilog=f"Exit codes:\n{exit_codes.as_lines()}",
        no_args_is_help=True,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for part in (
        push,
        work,
        jobs,
        dead,
        queues,
        groups,
        limiters,
        schedules,
        webhooks,
        batches,
        flows,
        handlers,
        server,
        audit,
        backup,
        top,
        tail,
        doctor,
        bench,
    ):
        part.register(app)
    _add_server_commands(app)
    give_hints(app)
    return app


def run() -> None:
    """Runs the command line. With `--json`, usage errors are JSON too."""
    speak_narrow()
    as_json = "--json" in sys.argv
    try:
        app = build()
        raise_interrupts()
        code = app(prog_name="jobline", standalone_mode=not as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        fall_silent()
        sys.exit(exit_codes.Exit.OK)
    except SystemExit as ended:
        sys.exit(_code_of(ended))
    except Exception as error:
        # Of click's own exceptions: typer brings a click of its own or not, by its version.
        if not hasattr(error, "format_message"):
            raise
        sys.stderr.write(error_line(error.format_message(), "See --help.", error))
        sys.exit(exit_codes.Exit.USAGE)
    sys.exit(code)


def _code_of(ended: SystemExit) -> str | int | None:
    """Returns the exit code, 0 if a pipe without a reader has ended it: typer and rich, which print
    the help, end with 1 then. The last of the output is flushed here, where a failure is handled.
    """
    is_cut = isinstance(ended.__context__, BrokenPipeError)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        is_cut = True
    if not is_cut:
        return ended.code
    fall_silent()
    return exit_codes.Exit.OK


def _root(
    _version: Annotated[bool, version_option("jobline", "jobline-server")] = False,
) -> None:
    """Push jobs, work on them, and look after the queues of a Jobline server."""


def _add_server_commands(app: typer.Typer) -> None:
    for point in entry_points(group=GROUP):
        _add(app, point)
    known = {info.name for info in app.registered_commands}
    for name, what in SERVER_COMMANDS.items():
        if name not in known:
            app.command(name, help=f"To {what}, {_INSTALL}.")(_missing(what))
    for info in app.registered_commands:
        if info.name in SERVER_COMMANDS:
            info.rich_help_panel = SERVER


def _add(app: typer.Typer, point: EntryPoint) -> None:
    try:
        register = point.load()
    except ImportError as error:
        # A broken server must not keep anybody from using the client.
        print(f"jobline: the commands of {point.value} cannot be loaded: {error}", file=sys.stderr)
        return
    register(app)


def _missing(what: str) -> Callable[[], None]:
    def missing() -> None:
        print(f"To {what}, {_INSTALL}", file=sys.stderr)
        raise typer.Exit(exit_codes.Exit.USAGE)

    return missing
