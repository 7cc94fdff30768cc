"""`jobline queue ls`, and what it shows of a queue in a line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from jobline._queue_values import Queue
from jobline.cli import completion
from jobline.cli.as_json import plain
from jobline.cli.command import Cli
from jobline.cli.durations import show_ago, show_moment
from jobline.cli.output import Column
from jobline.errors import PermissionDenied

if TYPE_CHECKING:
    from jobline import Client

# What a person reads; and what one call brings at most.
ROWS = 100
PAGE = 1_000

Pattern = Annotated[
    str,
    typer.Argument(
        metavar="PATTERN",
        help="Only names that begin with this; or that match it, where it has a *.",
        autocompletion=completion.queues,
    ),
]
Rows = Annotated[
    int | None,
    typer.Option("--limit", "-n", min=0, metavar="N", help="At most so many; 0: all."),
]


def ls(cli: Cli, pattern: Pattern = "", *, limit: Rows = None) -> None:
    """List queues with their counts, by name: the first 100, or with --json all."""
    rows = (None if cli.out.as_json else ROWS) if limit is None else limit or None
    found = matching(cli.client, pattern, min((rows or PAGE) + 1, PAGE))
    shown = islice(found, rows)
    count = cli.out.items(shown, plain, columns(cli.now()), none=lambda: _none(cli, pattern))
    if not cli.out.as_json and count == rows and next(found, None) is not None:
        cli.out.note(f"{_more(cli, pattern, count)}: --limit 0 for all, or begin a name.")


def _none(cli: Cli, pattern: str) -> str:
    """Says why no queue is listed: there may be others, which the caller may not see."""
    try:
        cli.client.admin.stats()
    except PermissionDenied:
        named = " of such a name" if pattern else ""
        return (
            f"No queue{named} that this caller may read: the list has those for which a role of it "
            "has the verb read."
        )
    return "No queue has such a name." if pattern else "No queues yet: push a job to make one."


def matching(client: Client, pattern: str, page_size: int) -> Iterator[Queue]:
    """Yields the queues whose names begin with a text, or match a glob. The server looks for what
    is before the first `*`.
    """
    begin, star, _ = pattern.partition("*")
    found = client.queues.list(begin, page_size=page_size)
    return (one for one in found if not star or fnmatchcase(one.name, pattern))


def _more(cli: Cli, pattern: str, count: int) -> str:
    """Says how many queues are not shown, where the server knows that, and the caller may."""
    with suppress(PermissionDenied):
        if not pattern:
            return f"The first {count:,} of {cli.client.admin.stats().queues:,}"
    return f"The first {count:,}, and there are more"


def columns(now: datetime) -> list[Column[Queue]]:
    """The columns of a list of queues."""
    return [
        Column("queue", lambda queue: queue.name),
        Column("ready", lambda queue: f"{queue.counts.ready:,}", right=True),
        Column("scheduled", lambda queue: f"{queue.counts.scheduled:,}", right=True),
        Column("blocked", lambda queue: f"{queue.counts.blocked:,}", right=True),
        Column("active", lambda queue: f"{queue.counts.active:,}", right=True),
        Column("completed", lambda queue: f"{queue.counts.completed:,}", right=True),
        Column("dead", lambda queue: f"{queue.counts.dead:,}", right=True),
        Column("oldest", lambda queue: show_ago(queue.oldest_ready_at, now)),
        Column("", remarks),
    ]


def remarks(queue: Queue) -> str:
    """What a person should know about a queue at a glance."""
    parts = []
    if queue.paused:
        why = f": {queue.pause_reason}" if queue.pause_reason else ""
        parts.append(f"paused{why}")
    if queue.limited_until is not None:
        parts.append(f"limited until {show_moment(queue.limited_until)}")
    if queue.counts.unhandled:
        parts.append(f"{queue.counts.unhandled:,} unhandled")
    return ", ".join(parts)
