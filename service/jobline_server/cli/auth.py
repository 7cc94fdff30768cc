"""`jobline auth`: makes API keys, and checks the file that the setting `auth` names."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

EXIT_WRONG = 2

Name = Annotated[str, typer.Argument(help="The name of the caller, as the log will show it.")]
Roles = Annotated[
    list[str], typer.Option("--role", help="A role of the caller; may be given several times.")
]
Expires = Annotated[
    str, typer.Option("--expires", help="When the key ends, such as 2027-01-01T00:00:00Z.")
]
File = Annotated[Path, typer.Argument(help="The file (TOML).")]


def register(app: typer.Typer) -> None:
    """Adds `auth`."""
    commands = typer.Typer(
        name="auth",
        help="Make API keys, and check the file of keys and roles.",
        no_args_is_help=True,
    )
    commands.command("new-key")(new_key)
    commands.command("check")(check)
    app.add_typer(commands)


def new_key(name: Name, role: Roles, expires: Expires = "") -> None:
    """Make an API key.

    The key is on stdout, and nowhere else: a server keeps its hash alone. The lines for the file of
    keys are on stderr, or below the key on a terminal.
    """
    from jobline_server.auth.api_keys import RANDOM_BYTES, hash_of, key_of

    key = key_of(os.urandom(RANDOM_BYTES))
    lines = key_lines(name, role, hash_of(key), expires)
    _check_lines(lines, role)
    print(key)
    print(f"\n{lines}", file=sys.stdout if sys.stdout.isatty() else sys.stderr, end="")


def key_lines(name: str, roles: list[str], hashed: str, expires: str) -> str:
    """Returns the lines of the file for a key."""
    named = ", ".join(f'"{role}"' for role in roles)
    end = f", expires = {expires}" if expires else ""
    return (
        f'[[keys]]\nname = "{name}"\nroles = [{named}]\nhashes = [{{ hash = "{hashed}"{end} }}]\n'
    )


def _check_lines(lines: str, roles: list[str]) -> None:
    """Ends the command where a server would not take the lines."""
    from jobline_server.auth.access_file import WrongAccessFile, check_access_text

    known = "".join(f'[[roles."{role}"]]\nqueues = ["*"]\nverbs = ["read"]\n' for role in roles)
    try:
        check_access_text(known + lines)
    except WrongAccessFile as wrong:
        print(wrong, file=sys.stderr)
        raise typer.Exit(EXIT_WRONG) from None


def check(file: File) -> None:
    """Check a file of keys and roles as a server would.

    Exit codes: 0 it can be used · 2 it cannot: each of the first ten mistakes has a line.
    """
    from jobline_server.auth.access_file import WrongAccessFile, read_access_file

    try:
        found = read_access_file(file)
    except WrongAccessFile as wrong:
        print(wrong, file=sys.stderr)
        raise typer.Exit(EXIT_WRONG) from None
    print(
        f"{len(found.keys)} keys, {len(found.jwt)} issuers, {len(found.certificates)} "
        f"certificates, {len(found.roles)} roles"
    )
