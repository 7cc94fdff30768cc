"""`jobline top`: the queues and workers of a server, live."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from jobline._queue_history import QueueMinute
from jobline._queue_values import Queue
from jobline._server_values import ConnectedWorker, ServerStats
from jobline.cli import last_hour
from jobline.cli import options as option
from jobline.cli.as_json import plain
from jobline.cli.command import SERVER, Cli, command
from jobline.cli.durations import show_ago
from jobline.cli.job_view import span_text
from jobline.cli.output import PIPE_WIDTH, Column, in_lines, table
from jobline.cli.queue_list import remarks
from jobline.cli.server import worker_columns
from jobline.errors import DeadlineExceeded, Unavailable

_HEADER_LINES = 6
# Queues and workers that are printed where no screen bounds them.
_PRINTED_ROWS = 50
# Queues of a page where all are wanted: what the server reads in one step.
_PAGE = 200
# Queues that are shown before the last hour has room, too.
_ROWS_BEFORE_HOUR = 8


@dataclass(frozen=True, slots=True)
class Sample:
    """State of the server at one moment, with monotonic seconds for the rates.

    `more`: how many queues there are beside these, which are the busiest; None if that is not
    known. If the server did not reply, it is a copy of the last one, with `is_silent` set.
    """

    at: float
    stats: ServerStats
    queues: dict[str, Queue]
    workers: list[ConnectedWorker]
    minutes: list[QueueMinute]
    more: int | None = 0
    is_silent: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A queue and its rates per second since the sample before."""

    queue: Queue
    pushed: float
    completed: float
    failed: float


def register(app: typer.Typer) -> None:
    """Adds `top`."""
    command(app, "top", rich_help_panel=SERVER)(top)


def top(
    cli: Cli,
    prefix: option.Prefix = "",
    *,
    interval: option.Interval = 1.0,
    limit: option.Samples = 0,
) -> None:
    """Show queues and workers live, busiest first, until you stop it.

    With the last hour, minute by minute: of all queues, or of the one that the prefix leaves.

    Without a terminal, or with --json, one look is printed after the other, each an interval after
    the one before it, so that it has rates. A server that falls silent is asked again; with --json
    nothing is printed until it answers. A screen shows as many queues as fit, a look without a
    terminal 50, one with --json all.
    """
    samples = _samples(cli, prefix, interval, limit)
    if cli.out.as_json:
        for before, sample in samples:
            if not sample.is_silent:
                cli.out.line(_as_json(before, sample))
        return
    if not cli.out.console.is_terminal:
        for before, sample in samples:
            cli.out.console.print(view(before, sample, cli.now(), rows_max=_PRINTED_ROWS))
        return
    with Live(console=cli.out.console, screen=True, auto_refresh=False) as live:
        for before, sample in samples:
            size = cli.out.console.size
            rows_max = max(size.height - _HEADER_LINES, 3)
            shown = view(before, sample, cli.now(), rows_max=rows_max, width=size.width)
            live.update(shown, refresh=True)


def _samples(cli: Cli, prefix: str, interval: float, limit: int) -> Iterator[tuple[Sample, Sample]]:
    """Yields pairs of a sample and the one before it, up to `limit` of them if it is set. A
    terminal gets a first pair at once, without rates.
    """
    before = sample = take_sample(cli, prefix, _rows_wanted(cli))
    done = 0
    if cli.out.console.is_terminal and not cli.out.as_json and not limit:
        yield before, sample
    while not limit or done < limit:
        time.sleep(interval)
        try:
            before, sample = sample, take_sample(cli, prefix, _rows_wanted(cli))
        except (Unavailable, DeadlineExceeded):
            before = sample = replace(sample, is_silent=True)
        yield before, sample
        done += 1


def _rows_wanted(cli: Cli) -> int | None:
    """Returns how many rows can be shown at most; None: all. A screen's height is a few more, so
    that a queue that rises to the screen has been there before, and has rates.
    """
    if cli.out.as_json:
        return None
    return cli.out.console.size.height if cli.out.console.is_terminal else _PRINTED_ROWS


def take_sample(cli: Cli, prefix: str, rows_max: int | None = None) -> Sample:
    """Reads the state of the server: all its queues and workers, or so many, the busiest queues."""
    if rows_max is None:
        found = list(cli.client.queues.list(prefix, page_size=_PAGE))
        workers = list(cli.client.admin.workers(page_size=_PAGE))
    else:
        # One more says whether there are more.
        page = min(rows_max + 1, _PAGE)
        busiest = cli.client.queues.list(prefix, order_by="activity desc", page_size=page)
        found = list(islice(busiest, rows_max + 1))
        workers = list(islice(cli.client.admin.workers(page_size=page), rows_max))
    queues = {queue.name: queue for queue in found[:rows_max]}
    minutes = _minutes(cli, prefix, queues)
    stats = cli.client.admin.stats()
    more: int | None = len(found) - len(queues)
    if more:
        more = None if prefix else stats.queues - len(queues)
    return Sample(time.monotonic(), stats, queues, workers, minutes, more)


def _minutes(cli: Cli, prefix: str, queues: Collection[str]) -> list[QueueMinute]:
    """Reads the last hour of all queues, or of the only one; those of several are not added up."""
    if prefix and len(queues) != 1:
        return []
    (queue,) = queues if prefix else ("",)
    return list(cli.client.queues.history(queue, cli.now() - last_hour.HOUR))


def rows(before: Sample, sample: Sample) -> list[Row]:
    """The queues with their rates, the busiest first."""
    seconds = sample.at - before.at
    found = [_row(before.queues.get(name), queue, seconds) for name, queue in sample.queues.items()]
    return sorted(found, key=_order)


def _row(before: Queue | None, queue: Queue, seconds: float) -> Row:
    def rate(field: str) -> float:
        # A total that went down was counted by another process: the server has restarted.
        grown = getattr(queue, field) - (getattr(before, field) if before is not None else 0)
        return max(grown, 0) / seconds if seconds > 0 and before is not None else 0.0

    return Row(queue, rate("pushed_total"), rate("completed_total"), rate("failed_total"))


def _order(row: Row) -> tuple[float, int, str]:
    counts = row.queue.counts
    return (-row.pushed - row.completed, -counts.ready - counts.active, row.queue.name)


def view(
    before: Sample, sample: Sample, now: datetime, *, rows_max: int, width: int = PIPE_WIDTH
) -> RenderableType:
    """Returns a sample as a screen."""
    head = _head(before, sample, now, width)
    rows_max = max(rows_max - len(head) + 2, 3)
    shown = rows(before, sample)
    hour = last_hour.rows(sample.minutes, now)
    parts: list[RenderableType] = [*head, ""]
    if hour and rows_max >= _ROWS_BEFORE_HOUR + len(hour):
        rows_max -= len(hour) + 2
        parts += [last_hour.view(hour, width), ""]
    parts.append(table(shown[:rows_max], _columns(now), width))
    if sample.more is None:
        parts.append(Text("… and more queues", style="dim"))
    elif (more := sample.more + max(len(shown) - rows_max, 0)) > 0:
        parts.append(Text(f"… and {more:,} queues", style="dim"))
    room = rows_max - len(shown) - 2
    if sample.workers and room > 0:
        parts += ["", table(sample.workers[:room], worker_columns(now), width)]
    return Group(*parts)


def _head(before: Sample, sample: Sample, now: datetime, width: int) -> list[Text]:
    """The server as a whole, in two lines or, on a narrow screen, a few more."""
    stats, seconds = sample.stats, sample.at - before.at
    server = [
        Text(f"jobline {stats.version}", "bold"),
        Text(f"started {show_ago(stats.started_at, now)}"),
        Text(f"commit {span_text(stats.commit_time)}"),
        Text(f"loop lag {span_text(stats.loop_lag)}"),
    ]
    counts = [
        Text(f"{getattr(stats, field):,} {field}")
        for field in ("ready", "scheduled", "blocked", "active", "dead", "workers")
    ]
    if seconds > 0:
        pushed = max(stats.pushed_total - before.stats.pushed_total, 0)
        completed = max(stats.completed_total - before.stats.completed_total, 0)
        counts.append(
            Text(f"{pushed / seconds:,.0f} pushed/s  {completed / seconds:,.0f} completed/s")
        )
    if stats.disk_full:
        counts.append(Text("DISK FULL", "bold red"))
    if sample.is_silent:
        counts.append(Text("NO ANSWER, asking again", "bold red"))
    return [*in_lines(server, width), *in_lines(counts, width)]


def _columns(now: datetime) -> list[Column[Row]]:
    return [
        Column("queue", lambda row: row.queue.name, style="bold", yields=True),
        Column("ready", lambda row: f"{row.queue.counts.ready:,}", right=True),
        Column(
            "scheduled", lambda row: f"{row.queue.counts.scheduled:,}", right=True, from_width=80
        ),
        Column("blocked", lambda row: f"{row.queue.counts.blocked:,}", right=True, from_width=100),
        Column("active", lambda row: f"{row.queue.counts.active:,}", right=True),
        Column("dead", lambda row: f"{row.queue.counts.dead:,}", right=True),
        Column("in/s", lambda row: f"{row.pushed:,.0f}", right=True),
        Column("done/s", lambda row: f"{row.completed:,.0f}", right=True),
        Column("failed/s", lambda row: f"{row.failed:,.1f}", right=True, from_width=80),
        Column("oldest", lambda row: show_ago(row.queue.oldest_ready_at, now)),
        Column("", lambda row: remarks(row.queue), from_width=100),
    ]


def _as_json(before: Sample, sample: Sample) -> dict[str, object]:
    return {
        "stats": plain(sample.stats),
        "queues": [
            {
                **plain(row.queue),
                "pushed_per_second": round(row.pushed, 1),
                "completed_per_second": round(row.completed, 1),
                "failed_per_second": round(row.failed, 1),
            }
            for row in rows(before, sample)
        ],
        "workers": [plain(worker) for worker in sample.workers],
    }
