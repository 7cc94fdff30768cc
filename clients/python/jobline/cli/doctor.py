"""`jobline doctor`: is the server well, and if not, what to do.

Each check is a function that checks one thing and returns what it found; the command runs them in
order and ends with 1 if one failed.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from importlib.metadata import version

import google.protobuf
import grpc
import typer

from jobline._backup_values import BackupState
from jobline._server_values import ServerStats
from jobline._status import error_from_rpc
from jobline.cli import doctor_options as option
from jobline.cli.advice import advice_for
from jobline.cli.command import SERVER, Cli, command
from jobline.cli.doctor_probe import probe
from jobline.cli.doctor_stream import access, streams
from jobline.cli.durations import show_ago, show_moment, show_span
from jobline.cli.exit_codes import Exit
from jobline.cli.findings import Finding, Health, failed, fine, line_of, worrying
from jobline.cli.output import counted
from jobline.errors import JoblineError, NotServed, PermissionDenied

_ROUNDS = 20
# A disk whose fsync takes longer than this makes every lone push feel slow.
_FSYNC_SECONDS_FINE = 0.02
_LAG_SECONDS_FINE = 0.1
_IS_IT = "Is it a Jobline server that listens there?"
_NOT_SERVING = (
    "It starts or stops, or its own work fails again and again: /readyz of its HTTP port says "
    "which, and its log why."
)
_SERVING = b"\x08\x01"  # grpc.health.v1.HealthCheckResponse{status: SERVING}


def register(app: typer.Typer) -> None:
    """Adds `doctor`."""
    command(app, "doctor", rich_help_panel=SERVER)(doctor)


def doctor(cli: Cli, *, read_only: option.ReadOnly = False, idle: option.Idle = 0.0) -> None:
    """Check a server: is it there, is it well, how fast is its disk, do the clocks agree,
    do streams pass.

    It pushes one job to the queue `jobline.doctor`, works on it, and deletes the queue again.
    Ends with 1 if a check failed.
    """
    worst = Health.FINE
    for finding in examine(cli, read_only=read_only, idle=idle):
        worst = max(worst, finding.health, key=lambda health: health.value)
        if cli.out.as_json:
            cli.out.line({**asdict(finding), "health": finding.health.name.lower()})
        else:
            cli.out.console.print(line_of(finding))
    if worst is Health.FAILED:
        raise typer.Exit(Exit.FAILED)


def examine(cli: Cli, *, read_only: bool, idle: float = 0.0) -> Iterator[Finding]:
    """Runs the checks in order; without a connection, only the first ones."""
    yield _client_versions()
    try:
        began = time.monotonic()
        channel = cli.client.channel
    except JoblineError as error:
        yield failed("reachable", error.message, advice_for(error, cli.connection))
        return
    yield fine("reachable", f"{cli.server} in {show_span(time.monotonic() - began)}")
    yield access(channel, cli.connection)
    yield _health(channel)
    try:
        stats = cli.client.admin.stats()
    except JoblineError as error:
        yield failed("answers", error.message, advice_for(error, cli.connection) or _IS_IT)
        return
    yield _versions(stats)
    yield _round_trip(cli)
    yield from _of_stats(stats)
    yield from _backups(cli)
    yield from streams(cli, idle)
    if not read_only:
        yield from probe(cli)


def _of_stats(stats: ServerStats) -> list[Finding]:
    return [_shards(stats), _disk(stats), _fsync(stats), _lag(stats), _workers(stats), _dead(stats)]


def _client_versions() -> Finding:
    summary = f"jobline {version('jobline')}, grpcio {version('grpcio')}"
    protobuf = google.protobuf.__version__
    return fine("client", f"{summary}, protobuf {protobuf}, Python {platform.python_version()}")


def _health(channel: grpc.Channel) -> Finding:
    """Asks the standard health service, in bytes: its stubs are not worth a dependency."""
    check: grpc.UnaryUnaryMultiCallable[bytes, bytes]
    check = channel.unary_unary("/grpc.health.v1.Health/Check")
    try:
        answer = check(b"", timeout=5)
    except grpc.RpcError as failure:
        error = error_from_rpc(failure)
        return failed("health", error.message, _IS_IT)
    if answer != _SERVING:
        return failed("health", "NOT SERVING", _NOT_SERVING)
    return fine("health", "SERVING")


def _versions(stats: ServerStats) -> Finding:
    ours, theirs = version("jobline"), stats.version
    summary = f"jobline-server {theirs}, transport {stats.transport}"
    if ours.split(".")[:2] != theirs.split(".")[:2]:
        return worrying("server", summary, f"The client is {ours}; use the same minor version.")
    return fine("server", summary)


def _round_trip(cli: Cli) -> Finding:
    times = []
    for _ in range(_ROUNDS):
        began = time.monotonic()
        cli.client.admin.stats()
        times.append(time.monotonic() - began)
    slowest = show_span(max(times))
    return fine("round trip", f"{show_span(statistics.median(times))}, slowest {slowest}")


def _shards(stats: ServerStats) -> Finding:
    lost = [shard for shard in stats.shards if shard.problem]
    if lost:
        found = "; ".join(f"shard {shard.shard} is {shard.problem}" for shard in lost)
        return failed("shards", found, "See the server's log; a restart serves it again.")
    return fine("shards", f"{counted(len(stats.shards), 'shard')} served")


def _disk(stats: ServerStats) -> Finding:
    if stats.disk_full:
        return failed("disk", "full: pushes are refused", "Make room where --data points to.")
    return fine("disk", "has room")


def _fsync(stats: ServerStats) -> Finding:
    seconds = _seconds(stats.commit_time)
    summary = f"{show_span(seconds)} a commit, fsync included, over the last ones"
    if not stats.commits:
        return fine("fsync", "nothing was committed since the start")
    if seconds > _FSYNC_SECONDS_FINE:
        return worrying("fsync", summary, "A slow disk: pushes that come together share a commit.")
    return fine("fsync", summary)


def _seconds(span: timedelta | None) -> float:
    return 0.0 if span is None else span.total_seconds()


def _lag(stats: ServerStats) -> Finding:
    seconds = _seconds(stats.loop_lag)
    summary = f"the loop stood still for {show_span(seconds)} at most in the last minute"
    if seconds > _LAG_SECONDS_FINE:
        return worrying("loop", summary, "The server is short of processor time.")
    return fine("loop", summary)


def _workers(stats: ServerStats) -> Finding:
    summary = f"{stats.workers:,} connected, {counted(stats.ready, 'job')} ready"
    if stats.ready and not stats.workers:
        return worrying("workers", summary, "Nobody works: start one with `jobline work QUEUE …`.")
    return fine("workers", summary)


def _dead(stats: ServerStats) -> Finding:
    if stats.dead:
        found = counted(stats.dead, "job")
        return worrying("dead letters", found, "Look: `jobline dead stats`.")
    return fine("dead letters", "none")


def _backups(cli: Cli) -> Iterator[Finding]:
    """Looks at the newest backup, if the caller may. One that failed leaves the server well."""
    try:
        known = cli.client.admin.backups()
    except (PermissionDenied, NotServed):
        return
    newest, last = known.backup, known.last_success_at
    whole = "no whole one is known"
    if last is not None:
        whole = f"the newest whole one is of {show_moment(last)}, {show_ago(last, cli.now())}"
    if not known.destination:
        yield fine("backups", "none are made: the server was started without --backup-to")
    elif newest.problem:
        found = f"the last try failed: {newest.problem}; {whole}"
        if newest.state is BackupState.RUNNING:
            found = f"one is being made; {found}"
        yield worrying("backups", found, "Mend that, and make one at once: `jobline backup`.")
    elif newest.state is BackupState.RUNNING:
        yield fine("backups", f"one is being made; {whole}")
    elif last is None:
        advice = (
            "Make one: `jobline backup`. Soon after a start the server may not have looked yet."
        )
        yield worrying("backups", whole, advice)
    else:
        yield fine("backups", whole)
