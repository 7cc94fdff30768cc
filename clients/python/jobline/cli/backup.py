"""`jobline backup`: has the server make a backup of itself."""

from __future__ import annotations

import time
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.filesize import decimal

from jobline._backup_values import Backup, Backups, BackupState
from jobline.cli.as_json import plain
from jobline.cli.command import SERVER, Cli, command
from jobline.cli.durations import show_ago, show_moment
from jobline.cli.exit_codes import Exit
from jobline.cli.output import pairs

LOOK_SECONDS = 0.2

OnlyStatus = Annotated[
    bool,
    typer.Option("--status", metavar="", help="Begin none; show the newest one, and where it is."),
]
NoWait = Annotated[
    bool, typer.Option("--no-wait", metavar="", help="Begin one, and do not wait for its end.")
]


def register(app: typer.Typer) -> None:
    """Adds `backup`."""
    command(app, "backup", rich_help_panel=SERVER)(backup)


def backup(cli: Cli, *, status: OnlyStatus = False, no_wait: NoWait = False) -> None:
    """Make a backup of the server while it serves, at the destination that it was started with.

    The backup goes on if this command is ended. `jobline restore` makes a data directory of one.
    """
    if status:
        found = cli.client.admin.backups()
        cli.out.document(plain(found), _view(found, cli))
        return
    begun = cli.client.admin.backup()
    if no_wait:
        cli.out.document(plain(begun), "a backup is being made; jobline backup --status shows it")
        return
    made = _followed(cli)
    cli.out.document(plain(made), _sentence(made))
    if made.state is not BackupState.WHOLE:
        raise typer.Exit(Exit.FAILED)


def _followed(cli: Cli) -> Backup:
    """Shows each step of a backup until its end."""
    found = cli.client.admin.backups().backup
    while found.state is BackupState.RUNNING:
        found = _followed_step(cli, found)
    return found


def _followed_step(cli: Cli, found: Backup) -> Backup:
    """Shows one step, which ends with the backup, or where another one begins."""
    step, shown = found.step, 0
    with cli.out.progress(step, found.total or None) as done:
        while found.step == step:
            done(max(found.done - shown, 0))
            shown = max(found.done, shown)
            time.sleep(LOOK_SECONDS)
            found = cli.client.admin.backups().backup
    return found


def _sentence(made: Backup) -> str:
    if made.state is BackupState.WHOLE:
        return f"backup {made.name} is whole: {decimal(made.stored_bytes)}"
    if made.state is BackupState.FAILED:
        return f"the backup failed: {made.problem}"
    # Another server is there now.
    return "the server was restarted, and the backup was given up"


def _view(found: Backups, cli: Cli) -> RenderableType:
    last = found.last_success_at
    newest = f"{show_moment(last)}, {show_ago(last, cli.now())}" if last else "none"
    now = found.backup
    is_running = now.state is BackupState.RUNNING
    running = f"{now.step}, {now.done:,} of {now.total:,}" if now.total else now.step
    return pairs(
        [
            ("destination", found.destination or "none: the server was started without one"),
            ("newest whole one", newest if found.destination else ""),
            ("its name", now.name if now.state is BackupState.WHOLE else ""),
            ("now", running if is_running else ""),
            ("failed before" if is_running else "failed", now.problem),
        ]
    )
