"""`jobline audit` and `jobline undo`: what operators did, and how to take it back."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

import typer

from jobline._operation_values import Operation, OperationState
from jobline.cli import options as option
from jobline.cli.as_json import plain
from jobline.cli.command import SERVER, Cli, command
from jobline.cli.durations import show_moment
from jobline.cli.output import Column, counted

OperationId = Annotated[
    str, typer.Argument(metavar="OPERATION", help="Its id, as `jobline audit` shows it.")
]
OneOperation = Annotated[
    str, typer.Argument(metavar="OPERATION", help="One operation; none: the newest ones.")
]
Principal = Annotated[
    str, typer.Option("--by", metavar="WHO", help="Only of this caller: anonymous@10.0.0.7.")
]
Method = Annotated[
    str, typer.Option("--verb", metavar="METHOD", help="Only calls of a method: PauseQueue.")
]
OfQueue = Annotated[str, typer.Option("--queue", metavar="QUEUE", help="Only of this queue.")]
Since = Annotated[
    float | None,
    typer.Option(
        "--since",
        parser=option.span,
        metavar="TIME",
        help="How far back: 5m, 2h, 14d; all of it by default.",
    ),
]


def register(app: typer.Typer) -> None:
    """Adds `audit` and `undo`."""
    command(app, "audit", rich_help_panel=SERVER)(audit)
    command(app, "undo", rich_help_panel=SERVER)(undo)


def audit(
    cli: Cli,
    operation: OneOperation = "",
    *,
    queue: OfQueue = "",
    verb: Method = "",
    by: Principal = "",
    since: Since = None,
    limit: option.Limit = 50,
) -> None:
    """Show what operators did, the newest first: who, when, what and why."""
    start: datetime | None = None if since is None else cli.now() - timedelta(seconds=since)
    found = cli.client.admin.operations(
        operation_id=operation, queue=queue, verb=verb, principal=by, start=start
    )
    more = "--limit, --since, --queue"
    none = "No such operations."
    cli.out.items(found, plain, COLUMNS, none=none, limit=limit, narrower=more)


def undo(
    cli: Cli,
    operation: OperationId,
    *,
    dry_run: option.DryRun = False,
    reason: option.Why = "",
) -> None:
    """Undo an operation: a pause, a change of settings or limits, or a cancel of waiting jobs."""
    done = cli.client.admin.undo(operation, dry_run=dry_run, reason=reason)
    jobs = f", {counted(done.count, 'job')} put back" if done.count or done.skipped else ""
    left = f", {done.skipped:,} left as they are" if done.skipped else ""
    would = "would be " if dry_run else ""
    value = {**plain(done), "dry_run": dry_run}
    cli.out.document(value, f"operation {operation} {would}undone{jobs}{left}")


def _target(operation: Operation) -> str:
    if operation.schedule:
        return operation.schedule
    if operation.batch_id:
        return str(operation.batch_id)
    queue_or_limiter = operation.queue or operation.limiter
    return f"{queue_or_limiter}/{operation.group}" if operation.group else queue_or_limiter


def _remarks(operation: Operation) -> str:
    remarks = []
    if operation.state in {OperationState.RUNNING, OperationState.INTERRUPTED}:
        remarks.append(operation.state.name.lower())
    if operation.undone_by:
        remarks.append(f"undone by {operation.undone_by}")
    if operation.undoes:
        remarks.append(f"undoes {operation.undoes}")
    if operation.reason:
        remarks.append(operation.reason)
    return ", ".join(remarks)


COLUMNS: list[Column[Operation]] = [
    Column("operation", lambda one: one.id),
    Column("at", lambda one: show_moment(one.started_at)),
    Column("by", lambda one: one.principal, from_width=100),
    Column("verb", lambda one: one.verb),
    Column("of", _target),
    Column("jobs", lambda one: f"{one.count:,}" if one.count else "", right=True),
    Column("", _remarks, yields=True),
]
