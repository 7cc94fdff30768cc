"""`jobline auth`: makes API keys, and checks the file that the setting `auth` names."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from jobline.cli.output import counted

EXIT_WRONG = 2

Name = Annotated[str, typer.Argument(help="The name of the caller, as the log will show it.")]
Roles = Annotated[
    list[str], typer.Option("--role", help="A role of the caller; may be given several times.")
]
Expires = Annotated[
    str, typer.Option("--expires", help="When the key ends, such as 2027-01-01T00:00:00Z.")
]
Into = Annotated[
    Path | None,
    typer.Option("--into", metavar="FILE", help="Append the lines of the key to this file."),
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


def new_key(name: Name, role: Roles, expires: Expires = "", into: Into = None) -> None:
    """Make an API key.

    The key is on stdout, and nowhere else: a server keeps its hash alone. Its lines are appended to
    the file of --into; without, they are on stderr, or below the key on a terminal.

    Exit codes: 0 made · 2 the name, an option or the file is wrong: nothing was made.
    """
    from jobline_server.auth.api_keys import RANDOM_BYTES, hash_of, key_of

    _check_names(name, role)
    end = _end_of(expires) if expires else None
    key = key_of(os.urandom(RANDOM_BYTES))
    lines = key_lines(name, role, hash_of(key), end)
    if into is None:
        _check_text("".join(map(_role_lines, dict.fromkeys(role))) + lines)
    else:
        _append(into, lines)
    if end is not None and end <= datetime.now(UTC):
        # A comment, because the lines on stderr may go to the file.
        print(f"# --expires {expires} is over: a server will refuse this key", file=sys.stderr)
    print(key)
    if into is None:
        print(f"\n{lines}", file=sys.stdout if sys.stdout.isatty() else sys.stderr, end="")
    else:
        print(f"{name} was added to {into}", file=sys.stderr)


def key_lines(name: str, roles: list[str], hashed: str, end: datetime | None) -> str:
    """Returns the lines of the file for a key."""
    named = ", ".join(f'"{role}"' for role in roles)
    ends = f", expires = {end.isoformat()}" if end else ""
    return (
        f'[[keys]]\nname = "{name}"\nroles = [{named}]\nhashes = [{{ hash = "{hashed}"{ends} }}]\n'
    )


def _role_lines(role: str) -> str:
    return f'[[roles."{role}"]]\nqueues = ["*"]\nverbs = ["read"]\n'


def _check_names(name: str, roles: list[str]) -> None:
    """Ends the command at a name that no file may have."""
    from jobline_server.auth.file_mistakes import NAME, NAME_SAID

    named = [("NAME", name), *(("--role", role) for role in roles)]
    for what, value in named:
        if not NAME.fullmatch(value):
            raise _wrong(f'{what} "{value}": {NAME_SAID}')


def _end_of(expires: str) -> datetime:
    """Returns the moment that is meant; ends the command if none is, or no time zone is named."""
    try:
        end = datetime.fromisoformat(expires)
    except ValueError:
        end = None
    if end is None or end.tzinfo is None:
        raise _wrong(
            f'--expires "{expires}": must be a date and a time with its zone, such as '
            "2027-01-01T00:00:00Z"
        )
    return end


def _append(file: Path, lines: str) -> None:
    """Appends a key to a file, if a server takes it then; else ends the command, nothing done."""
    try:
        before = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise _wrong(f"--into {file}: no such file: write one with the roles first") from None
    except (OSError, UnicodeDecodeError) as error:
        why = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise _wrong(f"--into {file}: {why}") from None
    added = ("" if before.endswith("\n") else "\n") + f"\n{lines}" if before else lines
    _check_text(before + added, f"--into {file}: ")
    try:
        with file.open("a", encoding="utf-8") as opened:
            opened.write(added)
    except OSError as error:
        raise _wrong(f"--into {file}: {(error.strerror or str(error)).lower()}") from None


def _check_text(text: str, before: str = "") -> None:
    """Ends the command where a server would not take the text."""
    from jobline_server.auth.access_file import WrongAccessFile, check_access_text

    try:
        check_access_text(text, before)
    except WrongAccessFile as wrong:
        raise _wrong(str(wrong)) from None


def _wrong(why: str) -> typer.Exit:
    print(why, file=sys.stderr)
    return typer.Exit(EXIT_WRONG)


def check(file: File) -> None:
    """Check a file of keys and roles as a server would, and each jwks_file that it names.

    Exit codes: 0 it can be used · 2 it cannot: each of the first ten mistakes has a line.
    """
    from jobline_server.auth.access_file import WrongAccessFile, read_access_file
    from jobline_server.auth.authenticator import check_key_files

    try:
        found = read_access_file(file)
        check_key_files(found)
    except WrongAccessFile as wrong:
        print(wrong, file=sys.stderr)
        raise typer.Exit(EXIT_WRONG) from None
    counts = {
        "key": len(found.keys),
        "issuer": len(found.jwt),
        "certificate": len(found.certificates),
        "role": len(found.roles),
    }
    print(", ".join(counted(count, what) for what, count in counts.items()))
    if found.certificates:
        # What the file alone cannot show.
        print(
            "certificates count only where the server has tls_client_ca (chart: tls.clientCa); "
            "without it, it does not start with this file",
            file=sys.stderr,
        )
