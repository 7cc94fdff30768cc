"""`jobline queue …`: look at queues, change their settings, pause and empty them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType

from jobline._enums import JobState
from jobline._filter_words import Conditions, parse
from jobline._queue_history import QueueMinute
from jobline._queue_values import Queue, QueueSettings
from jobline.cli import completion, last_hour
from jobline.cli import options as option
from jobline.cli import settings as words_of
from jobline.cli.as_json import plain
from jobline.cli.command import QUEUES, Cli, command
from jobline.cli.durations import show_ago, show_moment, show_span
from jobline.cli.exit_codes import UsageError
from jobline.cli.limited import show_limited
from jobline.cli.output import Column, counted, pairs
from jobline.cli.queue_list import ls
from jobline.errors import QueueNotFound

QueueOrAll = Annotated[
    str,
    typer.Argument(
        metavar="QUEUE",
        help="The queue; none: all queues together.",
        autocompletion=completion.queues,
    ),
]
Since = Annotated[
    float | None,
    typer.Option(
        "--since",
        parser=option.span,
        metavar="TIME",
        help="How far back: 5m, 2h, 14d; 1h by default.",
    ),
]


def register(app: typer.Typer) -> None:
    """Adds `queue` and its verbs."""
    queues = typer.Typer(help="Queues: look, set, pause, empty.", no_args_is_help=True)
    app.add_typer(queues, name="queue", rich_help_panel=QUEUES)
    command(queues, "ls")(ls)
    command(queues, "get")(get)
    command(queues, "history")(history)
    command(queues, "set")(set_)
    command(queues, "pause")(pause)
    command(queues, "resume")(resume)
    command(queues, "limit")(limit)
    command(queues, "drain")(drain)
    command(queues, "clean")(clean)
    command(queues, "rm")(rm)


def get(cli: Cli, queue: option.QueueName) -> None:
    """Show one queue with its settings and counts, and its last hour."""
    found, now = cli.client.queues.get(queue), cli.now()
    shown = _full(found, now)
    if not cli.out.as_json:
        hour = last_hour.rows(cli.client.queues.history(queue, now - last_hour.HOUR), now)
        if hour:
            shown = Group(shown, "", last_hour.view(hour, cli.out.console.width))
    cli.out.document(plain(found), shown)


def history(cli: Cli, queue: QueueOrAll = "", *, since: Since = None) -> None:
    """Show what happened in a queue, or in all of them, minute by minute."""
    start = None if since is None else cli.now() - timedelta(seconds=since)
    found = cli.client.queues.history(queue, start)
    cli.out.items(found, plain, _MINUTES, none="Nothing happened in that time.")


def set_(
    cli: Cli, queue: option.QueueName, words: option.Settings, *, reason: option.Why = ""
) -> None:
    """Change settings of a queue; creates it if it does not exist."""
    words_of.changes(QueueSettings(), words)  # mistyped ones are refused before anybody is asked
    try:
        settings = cli.client.queues.get(queue).settings
    except QueueNotFound:
        settings = QueueSettings()
    changed = words_of.changes(settings, words)
    _show(cli, cli.client.queues.update(queue, **changed, reason=reason))


def pause(cli: Cli, queue: option.QueueName, *, reason: option.Why = "") -> None:
    """Stop handing out jobs of a queue; pushes go on."""
    _show(cli, cli.client.queues.pause(queue, reason=reason))


def resume(cli: Cli, queue: option.QueueName, *, reason: option.Why = "") -> None:
    """Hand out jobs of a queue again."""
    _show(cli, cli.client.queues.resume(queue, reason=reason))


def limit(
    cli: Cli, queue: option.QueueName, *, span: option.For = None, reason: option.Why = ""
) -> None:
    """Hand out nothing for a time, then go on; without --for, lift that limit."""
    until = None if span is None else cli.now() + timedelta(seconds=span)
    _show(cli, cli.client.queues.limit(queue, until, reason=reason))


def drain(
    cli: Cli,
    queue: option.QueueName,
    *,
    dry_run: option.DryRun = False,
    yes: option.Yes = False,
    reason: option.Why = "",
) -> None:
    """Delete the jobs that wait; active ones go on."""
    if not dry_run and not yes:
        count = cli.client.queues.drain(queue, dry_run=True).count
        cli.confirm(f"Delete {counted(count, 'waiting job')} of {queue}?", yes=not count)
    answer = cli.client.queues.drain(queue, dry_run=dry_run, reason=reason)
    _show_count(cli, answer, counted(answer.count, "waiting job"), dry_run=dry_run)


def clean(
    cli: Cli,
    queue: option.QueueName,
    words: option.EndStates = None,
    *,
    older: option.OlderThan = None,
    dry_run: option.DryRun = False,
    yes: option.Yes = False,
    reason: option.Why = "",
) -> None:
    """Delete jobs that have ended, all but dead ones or those in the states you name."""
    chosen = _states(parse(words or [], cli.now()))
    keywords: dict[str, Any] = {"state": chosen, "older": older, "reason": reason}
    if not dry_run and not yes:
        count = cli.client.queues.clean(queue, dry_run=True, **keywords).count
        cli.confirm(f"Delete {counted(count, 'ended job')} of {queue}?", yes=not count)
    answer = cli.client.queues.clean(queue, dry_run=dry_run, **keywords)
    _show_count(cli, answer, counted(answer.count, "ended job"), dry_run=dry_run)


def rm(  # one argument an option of the command
    cli: Cli,
    queue: option.QueueName,
    *,
    force: option.Force = False,
    dry_run: option.DryRun = False,
    yes: option.Yes = False,
    reason: option.Why = "",
) -> None:
    """Delete a queue with all its jobs, dead and completed ones included."""
    if not dry_run and not yes:
        count = cli.client.queues.delete(queue, force=force, dry_run=True).count
        cli.confirm(f"Delete the queue {queue} with {counted(count, 'job')}?", yes=yes)
    answer = cli.client.queues.delete(queue, force=force, dry_run=dry_run, reason=reason)
    what = f"the queue {queue} with {counted(answer.count, 'job')}"
    _show_count(cli, answer, what, dry_run=dry_run)


def _states(chosen: Conditions) -> list[JobState]:
    if chosen.keys() - {"state"}:
        raise UsageError("clean takes state:… only; for other words use `jobline job rm`")
    states: list[JobState] = chosen.get("state", [])
    return states


_COUNTS = (
    "ready",
    "scheduled",
    "blocked",
    "active",
    "completed",
    "dead",
    "cancelled",
    "expired",
    "stale",
    "unhandled",
)


def _span(value: timedelta | None) -> str:
    return "" if value is None else show_span(value.total_seconds())


_MINUTES: list[Column[QueueMinute]] = [
    Column("minute", lambda minute: show_moment(minute.start_time)),
    Column("pushed", lambda minute: f"{minute.pushed:,}", right=True),
    Column("completed", lambda minute: f"{minute.completed:,}", right=True),
    Column("failed", lambda minute: f"{minute.failed:,}", right=True),
    Column("dead", lambda minute: f"{minute.dead:,}", right=True),
    Column("waited p50", lambda minute: _span(minute.waited_p50), right=True),
    Column("waited p95", lambda minute: _span(minute.waited_p95), right=True),
]


def _show(cli: Cli, queue: Queue) -> None:
    cli.out.document(plain(queue), _full(queue, cli.now()))


def _full(queue: Queue, now: datetime) -> RenderableType:
    counts = [(name, f"{count:,}") for name in _COUNTS if (count := getattr(queue.counts, name))]
    priorities = ", ".join(f"{one.priority}: {one.ready:,}" for one in queue.counts.priorities)
    by = f"by {queue.paused_by}" if queue.paused_by else "yes"
    paused = ": ".join(filter(None, [by, queue.pause_reason]))
    failed = f"{queue.failed_total:,} failed"
    head = [
        ("queue", queue.name),
        ("shard", str(queue.shard)),
        ("paused", paused if queue.paused else ""),
        ("limited", _limited(queue)),
        ("tokens", "" if queue.tokens is None else f"{queue.tokens:,}"),
        ("worker time", _worker_time(queue)),
        ("workers needed", _workers_needed(queue)),
        ("created", show_moment(queue.created_at)),
        ("oldest ready", show_ago(queue.oldest_ready_at, now)),
        (
            "since start",
            f"{queue.pushed_total:,} pushed, {queue.completed_total:,} completed, {failed}",
        ),
    ]
    own = words_of.rows(queue.settings) or [("settings", "the defaults")]
    return Group(pairs([*head, *counts, ("by priority", priorities)]), "", pairs(own))


def _workers_needed(queue: Queue) -> str:
    needed = queue.workers_needed
    if needed is None:
        return ""
    at_a_time = f"{needed.slots_per_worker:g}"  # a mean of those that work
    slots = f"{at_a_time} {'job' if at_a_time == '1' else 'jobs'} at a time each"
    ran = "" if needed.mean_run is None else f" of {show_span(needed.mean_run.total_seconds())}"
    return f"{needed.workers:,}, {slots}; {needed.arrivals_per_second:.3g} jobs/s{ran} come"


def _worker_time(queue: Queue) -> str:
    return _span(queue.worker_time)


def _limited(queue: Queue) -> str:
    return show_limited(queue.limited_until, queue.limited_by, queue.limited_reason)


def _show_count(cli: Cli, answer: Any, what: str, *, dry_run: bool) -> None:
    value = {"count": answer.count, "operation_id": answer.operation_id, "dry_run": dry_run}
    cli.out.document(value, f"{what} {'would be ' if dry_run else ''}deleted")
