"""`--version` of a command line: what is installed of the distributions that it is made of."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

import typer


def version_option(*distributions: str) -> Any:
    """Returns the option of the root command: it shows the version of each, and exits."""

    def show(asked: bool) -> None:
        if not asked:
            return
        for distribution in distributions:
            try:
                print(distribution, version(distribution))
            except PackageNotFoundError:
                print(distribution, "not installed")
        raise typer.Exit

    return typer.Option(
        "--version", callback=show, is_eager=True, metavar="", help="Show versions and exit."
    )
