"""`jobline group …`: look at the groups of a queue, change their settings, pause them."""

from __future__ import annotations

from datetime import timedelta

import typer

from jobline._group_values import Group
from jobline.cli import options as option
from jobline.cli import settings as words_of
from jobline.cli.as_json import plain
from jobline.cli.command import QUEUES, Cli, command
from jobline.cli.durations import show_span
from jobline.cli.limited import show_limited
from jobline.cli.output import Column, pairs
from jobline.errors import NotFound


def register(app: typer.Typer) -> None:
    """Adds `group` and its verbs."""
    groups = typer.Typer(help="Groups of a queue: look, set, pause.", no_args_is_help=True)
    app.add_typer(groups, name="group", rich_help_panel=QUEUES)
    command(groups, "ls")(ls)
    command(groups, "get")(get)
    command(groups, "set")(set_)
    command(groups, "pause")(pause)
    command(groups, "resume")(resume)
    command(groups, "limit")(limit)


def ls(cli: Cli, queue: option.QueueName, prefix: option.GroupPrefix = "") -> None:
    """List the groups of a queue that have jobs, settings, a pause or a dead head."""
    found = cli.client.queues.groups.list(queue, prefix)
    cli.out.items(found, plain, _COLUMNS, none="No groups.")


def get(cli: Cli, queue: option.QueueName, group: option.GroupName) -> None:
    """Show one group: its settings, its jobs, and what it waits for."""
    # By name, so that it is the first of those that start as it does.
    first = next(iter(cli.client.queues.groups.list(queue, group, page_size=1)), None)
    if first is None or first.group != group:
        raise NotFound(
            f"group {group} of queue {queue} has no live jobs, settings, pause or dead head"
        )
    _show(cli, first)


def set_(
    cli: Cli,
    queue: option.QueueName,
    group: option.GroupName,
    words: option.GroupSettings,
    *,
    reason: option.Why = "",
) -> None:
    """Change settings of a group; creates it if it does not exist."""
    changes = words_of.group_changes(words)
    _show(cli, cli.client.queues.groups.update(queue, group, reason=reason, **changes))


def pause(
    cli: Cli, queue: option.QueueName, group: option.GroupName, *, reason: option.Why = ""
) -> None:
    """Stop handing out the jobs of a group; pushes go on."""
    _show(cli, cli.client.queues.groups.pause(queue, group, reason=reason))


def resume(
    cli: Cli, queue: option.QueueName, group: option.GroupName, *, reason: option.Why = ""
) -> None:
    """Hand out the jobs of a group again."""
    _show(cli, cli.client.queues.groups.resume(queue, group, reason=reason))


def limit(
    cli: Cli,
    queue: option.QueueName,
    group: option.GroupName,
    *,
    span: option.For = None,
    reason: option.Why = "",
) -> None:
    """Hand out no job of a group for a time, then go on; without --for, lift that limit."""
    until = None if span is None else cli.now() + timedelta(seconds=span)
    _show(cli, cli.client.queues.groups.limit(queue, group, until, reason=reason))


def _limited(group: Group) -> str:
    return show_limited(group.limited_until, group.limited_by, group.limited_reason)


def _paused(group: Group) -> str:
    by = f"by {group.paused_by}" if group.paused_by else "yes"
    return ": ".join(filter(None, [by, group.pause_reason])) if group.paused else ""


def _dead_heads(group: Group) -> str:
    return ", ".join(map(str, group.dead_heads))


def _waits_for(group: Group) -> str:
    """Says what must happen before another job of it is handed out, "" for nothing."""
    found = ["to be resumed"] if group.paused else []
    if group.dead_heads:
        found.append("its dead jobs to be retried or deleted")
    if group.limited_until is not None:
        found.append("the end of its limit")
    if group.ready and group.tokens == 0:
        found.append("the next token of its rate")
    is_serial = group.weight is None
    if not found and is_serial and group.ready and group.active:
        found.append("an active job to end, or a higher concurrency")
    return " and ".join(found)


def _worker_time(group: Group) -> str:
    return "" if group.worker_time is None else show_span(group.worker_time.total_seconds())


def _settings(group: Group) -> str:
    return "  ".join(f"{key}={value}" for key, value in words_of.group_rows(group.settings))


_COLUMNS: list[Column[Group]] = [
    Column("group", lambda group: group.group),
    Column("ready", lambda group: f"{group.ready:,}", right=True),
    Column("active", lambda group: f"{group.active:,}", right=True),
    Column("scheduled", lambda group: f"{group.scheduled:,}", right=True),
    Column("worker time", _worker_time, right=True),
    Column("paused", _paused),
    Column("limited", _limited),
    Column("held by", _dead_heads),
    Column("settings", _settings),
]


def _show(cli: Cli, group: Group) -> None:
    rows = [
        ("group", group.group),
        ("queue", group.queue),
        ("paused", _paused(group)),
        ("ready", f"{group.ready:,}"),
        ("active", f"{group.active:,}"),
        ("scheduled", f"{group.scheduled:,}"),
        ("weight", "" if group.weight is None else f"{group.weight:,}"),
        ("worker time", _worker_time(group)),
        ("limited", _limited(group)),
        ("tokens", "" if group.tokens is None else f"{group.tokens:,}"),
        ("held by dead", _dead_heads(group)),
        ("waits for", _waits_for(group)),
        ("settings", _settings(group) or "those of the queue"),
    ]
    cli.out.document(plain(group), pairs(rows))
