"""`jobline serve`: runs a server. Every setting is a flag."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from jobline._interrupts import EndingQuietly
from jobline_server.cli.flags import PlainHelp, with_settings
from jobline_server.config import ConfigurationError, Settings, load_settings
from jobline_server.memory import stop_collecting

EPILOG = (
    "The ready line on stdout is JSON (grpc, http, addresses, transport, version, pid), or words "
    "on a terminal. The log goes to stderr.\n\n"
    "Exit codes: 0 stopped by SIGTERM or SIGINT (a second one hastens) · 1 the disk failed · "
    "2 cannot start: the log says why · 130 SIGINT while it started."
)

ConfigFile = Annotated[Path | None, typer.Option("--config", help="Settings file (TOML).")]


def register(app: typer.Typer) -> None:
    """Adds `serve`."""
    app.command("serve", epilog=EPILOG, cls=PlainHelp)(with_settings(serve))


def serve(*, config: ConfigFile = None, given: dict[str, Any]) -> None:
    """Run a server until it is stopped.

    Flags win over the environment (JOBLINE_…), the environment over the file, the file over the
    defaults. A setting that cannot be applied stops the start.
    """
    stop_collecting()
    with EndingQuietly():
        from jobline_server.serving import run

    raise typer.Exit(run(settings_of(given, config)))


def settings_of(given: dict[str, Any], config: Path | None) -> Settings:
    """Loads the settings; wrong ones end the command, like `python -m jobline_server`."""
    try:
        return load_settings(given, config)
    except ConfigurationError as error:
        from jobline_server.serving import EXIT_CANNOT_START

        print(error, file=sys.stderr)
        raise typer.Exit(EXIT_CANNOT_START) from None
