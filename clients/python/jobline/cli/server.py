"""`jobline stats` and `jobline worker ls`: the server itself, and its workers."""

from __future__ import annotations

from datetime import datetime

import typer
from rich.console import Group, RenderableType

from jobline._server_values import ConnectedWorker, ServerStats, ShardStats
from jobline.cli import options as option
from jobline.cli.as_json import plain
from jobline.cli.command import QUEUES, SERVER, Cli, command
from jobline.cli.durations import show_ago
from jobline.cli.job_view import span_text
from jobline.cli.output import Column, pairs, table


def register(app: typer.Typer) -> None:
    """Adds `stats` and `worker`."""
    workers = typer.Typer(help="Workers: who is connected.", no_args_is_help=True)
    app.add_typer(workers, name="worker", rich_help_panel=QUEUES)
    command(app, "stats", rich_help_panel=SERVER)(stats)
    command(workers, "ls")(ls)


def stats(cli: Cli) -> None:
    """Show counts and health of the server."""
    answer = cli.client.admin.stats()
    cli.out.document(plain(answer), stats_view(answer, cli.now()))


def ls(cli: Cli, queue: option.OneQueue = "") -> None:
    """List connected workers, or those that take from one queue."""
    none = "No worker is connected. Start one: jobline work QUEUE --shell COMMAND"
    cli.out.items(cli.client.admin.workers(queue), plain, worker_columns(cli.now()), none=none)


def stats_view(answer: ServerStats, now: datetime) -> RenderableType:
    """The server for a person: what waits, what was done, how the disk does."""
    mebibytes = answer.waiting_bytes / (1 << 20)
    failed = f"{answer.failed_total:,} failed attempts"
    delayed = f"{answer.scheduled:,} scheduled, {answer.blocked:,} blocked"
    rows = [
        ("version", f"{answer.version} ({answer.transport})"),
        ("started", show_ago(answer.started_at, now)),
        ("queues", f"{answer.queues:,}"),
        (
            "waiting",
            f"{answer.ready:,} ready, {delayed}, {mebibytes:,.1f} MiB",
        ),
        ("active", f"{answer.active:,}"),
        ("ended", f"{answer.completed:,} completed and {answer.dead:,} dead are kept"),
        (
            "since start",
            f"{answer.pushed_total:,} pushed, {answer.completed_total:,} completed, {failed}",
        ),
        ("workers", f"{answer.workers:,}"),
        ("commits", f"{answer.commits:,}, {span_text(answer.commit_time)} each"),
        ("loop lag", span_text(answer.loop_lag)),
        ("keys", f"{answer.keys:,}"),
        ("disk", "FULL: pushes are refused" if answer.disk_full else ""),
    ]
    return Group(pairs(rows), "", table(answer.shards, _SHARDS))


def worker_columns(now: datetime) -> list[Column[ConnectedWorker]]:
    """The columns of a list of workers."""
    return [
        Column("worker", lambda worker: worker.description.id or worker.session[:12]),
        Column(
            "host",
            lambda worker: f"{worker.description.host}:{worker.description.pid}",
            from_width=100,
        ),
        Column("client", lambda worker: worker.description.language, from_width=100),
        Column("version", lambda worker: worker.description.version, from_width=100),
        Column("queues", lambda worker: " ".join(one.queue for one in worker.queues)),
        Column("names", _names, from_width=80),
        Column("has", lambda worker: f"{worker.in_flight:,} of {worker.window:,}", right=True),
        Column("connected", lambda worker: show_ago(worker.connected_at, now)),
        Column("heard", lambda worker: show_ago(worker.last_heard_at, now)),
        Column("", _state),
    ]


def _host(worker: ConnectedWorker) -> str:
    return f"{worker.description.host}:{worker.description.pid}"


def _names(worker: ConnectedWorker) -> str:
    return " ".join(sorted({handler.name or "-" for handler in worker.handlers}))


def _state(worker: ConnectedWorker) -> str:
    if worker.lost:
        return "lost"
    return "draining" if worker.draining else ""


_SHARDS: list[Column[ShardStats]] = [
    Column("shard", lambda one: str(one.shard), right=True),
    Column("epoch", lambda one: str(one.epoch), right=True),
    Column("offset", lambda one: f"{one.offset:,}", right=True),
    Column("checkpoint", lambda one: f"{one.checkpoint_offset:,}", right=True),
    Column("live jobs", lambda one: f"{one.live_jobs:,}", right=True),
    Column("queues", lambda one: f"{one.queues:,}", right=True),
    Column("", lambda one: one.problem, style="red", yields=True),
]
