"""`jobline bench`: what Jobline does on this machine, or how fast a server is from here.

Without `--server` it runs `jobline dev` in a process of its own, with everything on the disk as
`jobline serve` has it. The figures say as much about the machine as about the program, so the time
of an fsync stands beside them. The loads are in `bench_loads.py`.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jobline.cli import bench_loads as loads
from jobline.cli.bench_loads import Figure
from jobline.cli.bench_server import fsync_times, own_server
from jobline.cli.command import SERVER, Cli, command
from jobline.cli.connection import Connection
from jobline.cli.connection_options import PANEL, parameters
from jobline.cli.durations import show_span
from jobline.cli.exit_codes import UsageError
from jobline.cli.output import Column
from jobline.errors import JoblineError

if TYPE_CHECKING:
    from jobline import Client

JOBS_MAX = 10_000_000
SINGLES_MAX = 100_000

# JOBLINE_SERVER is not read here: a load is put on a server that was named for it.
Target = Annotated[
    str,
    typer.Option(
        "--server",
        "-s",
        metavar="HOST:PORT",
        show_default=False,
        help="Measure this server, from here. Unset: one of its own, which ends with it.",
        rich_help_panel=PANEL,
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="The disk for its own server: a new directory in this one. Unset: the current one.",
    ),
]
Jobs = Annotated[
    int, typer.Option("--jobs", min=1_000, max=JOBS_MAX, help="How many are pushed together.")
]
Singles = Annotated[
    int, typer.Option("--singles", min=10, max=SINGLES_MAX, help="How many go one at a time.")
]


def register(app: typer.Typer) -> None:
    """Adds `bench`."""
    command(app, "bench", parameters(Target, ""), rich_help_panel=SERVER)(bench)


def bench(cli: Cli, *, data: Folder = None, jobs: Jobs = 200_000, singles: Singles = 500) -> None:
    """Measure a server on this machine: pushes, a worker's stream, one job at a time.

    Every push and every ack is on the disk before it is answered; payloads have 100 bytes. Other
    programs that run meanwhile make the figures worse. On a server of yours it uses a queue of its
    own, which it deletes at the end.
    """
    if cli.server and data:
        raise UsageError("--data is for a server of its own; leave it out with --server")
    if cli.server:
        cli.out.items(_measured(cli, jobs, singles), _plain, COLUMNS)
        return
    folder = data or Path.cwd()
    with cli.out.progress("time of an fsync", None):
        times = fsync_times(folder)
    with own_server(folder, cli.out) as address:
        cli.connection = Connection(address)  # neither a token nor TLS: they are another server's
        figures = [*_measured(cli, jobs, singles), _of_fsync(times, folder)]
        cli.out.items(figures, _plain, COLUMNS)
        cli.close()


def _measured(cli: Cli, jobs: int, singles: int) -> Iterator[Figure]:
    """Runs the loads, one after another."""
    with _queue_of_its_own(cli.client) as queue:
        with cli.out.progress("push", jobs) as advance:
            yield loads.push(cli.client, queue, jobs, advance)
        with cli.out.progress("work", jobs) as advance:
            yield loads.work(cli.connection, queue, jobs, advance)
        with cli.out.progress("push, one at a time", singles) as advance:
            yield loads.push_singly(cli.client, queue, singles, advance)
        with cli.out.progress("push and work, one at a time", singles) as advance:
            yield loads.work_singly(cli.client, queue, singles, advance)
        commit = cli.client.admin.stats().commit_time
        if commit is not None:
            seconds = commit.total_seconds()
            yield Figure("a commit of the server, fsync included", p50_seconds=seconds)


@contextmanager
def _queue_of_its_own(client: Client) -> Iterator[str]:
    queue = f"jobline.bench-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    try:
        yield queue
    finally:
        try:
            client.queues.delete(queue, force=True)
        except JoblineError as error:
            typer.echo(f"the queue {queue} is left: {error.message}", err=True)


def _of_fsync(times: list[float], folder: Path) -> Figure:
    what = f"append 4 KiB and fsync, in {folder}"
    return loads.of_times(what, times)


def _plain(figure: Figure) -> dict[str, object]:
    return {name: value for name, value in asdict(figure).items() if value is not None}


COLUMNS: list[Column[Figure]] = [
    Column("what", lambda one: one.what),
    Column(
        "jobs/s", lambda one: "" if not one.per_second else f"{one.per_second:,.0f}", right=True
    ),
    Column("p50", lambda one: _span(one.p50_seconds), right=True),
    Column("p99", lambda one: _span(one.p99_seconds), right=True),
]


def _span(seconds: float | None) -> str:
    return "" if seconds is None else show_span(seconds)
