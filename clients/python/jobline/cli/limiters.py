"""`jobline limiter …`: limits that jobs of any queues share."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from jobline._limiter_values import Limiter
from jobline.cli import completion
from jobline.cli import options as option
from jobline.cli.as_json import plain
from jobline.cli.command import QUEUES, Cli, command
from jobline.cli.durations import show_moment
from jobline.cli.exit_codes import UsageError
from jobline.cli.output import Column
from jobline.cli.setting_values import parse_rate, show_rate

Name = Annotated[
    str, typer.Argument(metavar="LIMITER", help="The limiter.", autocompletion=completion.limiters)
]
Prefix = Annotated[
    str, typer.Argument(metavar="PREFIX", help="Only limiters whose names start with this.")
]
Rate = Annotated[
    str, typer.Option("--rate", metavar="RATE", help="How many may start: 100/1m or 100/1m/20.")
]
AtOnce = Annotated[
    int | None,
    typer.Option("--concurrency", min=1, metavar="N", help="How many may be active at once."),
]


def register(app: typer.Typer) -> None:
    """Adds `limiter` and its verbs."""
    limiters = typer.Typer(help="Limiters: look, set, empty.", no_args_is_help=True)
    app.add_typer(limiters, name="limiter", rich_help_panel=QUEUES)
    command(limiters, "ls")(ls)
    command(limiters, "get")(get)
    command(limiters, "set")(set_)
    command(limiters, "empty")(empty)
    command(limiters, "rm")(rm)


def ls(cli: Cli, prefix: Prefix = "") -> None:
    """List limiters."""
    cli.out.items(cli.client.limiters.list(prefix), plain, COLUMNS, none="No limiters yet.")


def get(cli: Cli, limiter: Name) -> None:
    """Show one limiter."""
    _show(cli, cli.client.limiters.get(limiter))


def set_(
    cli: Cli,
    limiter: Name,
    *,
    rate: Rate = "",
    most: AtOnce = None,
    reason: option.Why = "",
) -> None:
    """Create a limiter, or change its limits: all of them, so name those that stay."""
    try:
        parsed = parse_rate(rate) if rate else None
    except ValueError as error:
        raise UsageError(f"--rate: {error}") from None
    found = cli.client.limiters.upsert(limiter, rate=parsed, concurrency=most, reason=reason)
    _show(cli, found)


def empty(cli: Cli, limiter: Name, *, span: option.For = None, reason: option.Why = "") -> None:
    """Let nothing out for a time, then go on; without --for, lift that limit."""
    until = None if span is None else cli.now() + timedelta(seconds=span)
    _show(cli, cli.client.limiters.empty(limiter, until, reason=reason))


def rm(cli: Cli, limiter: Name, *, yes: option.Yes = False, reason: option.Why = "") -> None:
    """Delete a limiter: jobs that name it go free."""
    cli.confirm(f"Delete the limiter {limiter}?", yes=yes, or_else="")
    cli.client.limiters.delete(limiter, reason=reason)
    cli.out.document({"limiter": limiter}, f"the limiter {limiter} deleted")


def _remarks(limiter: Limiter) -> str:
    if limiter.limited_until is None:
        return ""
    why = f": {limiter.limited_reason}" if limiter.limited_reason else ""
    return f"limited until {show_moment(limiter.limited_until)}{why}"


COLUMNS: list[Column[Limiter]] = [
    Column("limiter", lambda limiter: limiter.name),
    Column("rate", lambda limiter: "" if limiter.rate is None else show_rate(limiter.rate)),
    Column("tokens", lambda one: "" if one.tokens is None else f"{one.tokens:,}", right=True),
    Column("at once", lambda one: str(one.concurrency or ""), right=True),
    Column("active", lambda one: f"{one.active:,}", right=True),
    Column("", _remarks),
]


def _show(cli: Cli, limiter: Limiter) -> None:
    cli.out.items([limiter], plain, COLUMNS, none="")
