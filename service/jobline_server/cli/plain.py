"""Runs a server by flags, without typer: what `python -m jobline_server` does."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from jobline_server.cli.described import flag_of, help_of, in_order, is_switch, metavar_of
from jobline_server.config import ConfigurationError, Settings, load_settings

USAGE = "python -m jobline_server [-h] [--config PATH] [--SETTING VALUE] …"
DESCRIPTION = (
    "Run a server until it is stopped. Flags win over the environment (JOBLINE_…), the "
    "environment over the file, the file over the defaults."
)


def serve(arguments: list[str] | None = None) -> int:
    """Reads the settings and runs a server; returns the exit code."""
    # Before grpc is imported: its core would write lines about garbage sent to the port to stderr,
    # past the log.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from jobline_server.serving import EXIT_CANNOT_START, run

    flags = vars(make_parser().parse_args(arguments))
    file = flags.pop("config")
    try:
        settings = load_settings(flags, file)
    except ConfigurationError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_CANNOT_START
    return run(settings)


def make_parser() -> argparse.ArgumentParser:
    """Returns a parser with every setting as a flag; a flag that is not given is None."""
    parser = argparse.ArgumentParser(
        prog="python -m jobline_server", usage=USAGE, description=DESCRIPTION, allow_abbrev=False
    )
    parser.add_argument("--config", type=Path, metavar="PATH", help="Settings file (TOML).")
    for name, info in in_order(Settings.model_fields).items():
        # argparse formats a help text with `%`.
        text = help_of(info).replace("%", "%%")
        if is_switch(info):
            parser.add_argument(
                flag_of(name), action=argparse.BooleanOptionalAction, default=None, help=text
            )
        else:
            parser.add_argument(flag_of(name), metavar=metavar_of(name, info), help=text)
    return parser
