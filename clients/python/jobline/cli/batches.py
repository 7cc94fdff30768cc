"""`jobline batch …`: jobs that are counted together."""

from __future__ import annotations

from typing import Annotated

import typer

from jobline._batch_values import Batch, BatchCallback
from jobline.cli import options as option
from jobline.cli.as_json import plain
from jobline.cli.command import QUEUES, Cli, command
from jobline.cli.output import Column
from jobline.errors import BatchNotFound

Id = Annotated[int, typer.Argument(metavar="ID", help="The batch.")]
Name = Annotated[str, typer.Option("--name", metavar="NAME", help="What it is.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="Repeatable.")]
Parent = Annotated[
    int, typer.Option("--parent", metavar="ID", help="The batch that it is a member of.")
]
States = Annotated[
    list[str] | None,
    typer.Option("--state", metavar="STATE", help="open, closed or complete. Repeatable."),
]


def _callback(name: str, when: str) -> typer.models.OptionInfo:
    option_: typer.models.OptionInfo = typer.Option(
        name, metavar="QUEUE", help=f"Push a job to this queue when {when}."
    )
    return option_


OnSuccess = Annotated[str, _callback("--on-success", "all members have completed")]
OnComplete = Annotated[str, _callback("--on-complete", "all have ended")]
OnFirstDeath = Annotated[str, _callback("--on-first-death", "the first one is dead")]


def register(app: typer.Typer) -> None:
    """Adds `batch` and its verbs."""
    batches = typer.Typer(help="Batches: create, look, close, cancel.", no_args_is_help=True)
    app.add_typer(batches, name="batch", rich_help_panel=QUEUES)
    command(batches, "ls")(ls)
    command(batches, "get")(get)
    command(batches, "create")(create)
    command(batches, "close")(close)
    command(batches, "cancel")(cancel)


def ls(
    cli: Cli,
    *,
    state: States = None,
    name: Name = "",
    tag: Tags = None,
    parent: Parent = 0,
) -> None:
    """List batches."""
    found = cli.client.batches.list(state=state or (), name=name, tags=tag or (), parent=parent)  # type: ignore[arg-type]  # names are checked there
    cli.out.items(found, plain, COLUMNS, none="No batches.")


def get(cli: Cli, batch: Id) -> None:
    """Show one batch."""
    _show(cli, cli.client.batches.get(batch))


def create(
    cli: Cli,
    *,
    name: Name = "",
    tag: Tags = None,
    parent: Parent = 0,
    on_success: OnSuccess = "",
    on_complete: OnComplete = "",
    on_first_death: OnFirstDeath = "",
) -> None:
    """Create a batch; push members with `jobline push --batch ID`, then close it."""
    made = cli.client.batches.create(
        name,
        tags=tag or (),
        parent=parent,
        on_success=_to(on_success),
        on_complete=_to(on_complete),
        on_first_death=_to(on_first_death),
    )
    try:
        _show(cli, made.get())
    except BatchNotFound:  # by a caller who may push and not read: it is there all the same
        cli.out.document({"id": made.id}, f"batch {made.id}")


def close(cli: Cli, batch: Id) -> None:
    """Close a batch: it is complete when all members have ended."""
    _show(cli, cli.client.batches.close(batch))


def cancel(
    cli: Cli,
    batch: Id,
    *,
    dry_run: option.DryRun = False,
    yes: option.Yes = False,
    reason: option.Why = "",
) -> None:
    """Cancel what is left of a batch, and of the batches in it."""
    if not dry_run and not yes:
        found = cli.client.batches.cancel(batch, dry_run=True)
        left = found.cancelled + found.requested
        cli.confirm(f"Cancel {left:,} jobs of batch {batch}?", yes=yes)
    done = cli.client.batches.cancel(batch, dry_run=dry_run, reason=reason)
    would = "would be " if dry_run else ""
    text = f"{done.cancelled:,} jobs {would}cancelled"
    if done.requested:
        text += f"; their workers {would or 'are '}told to stop: {done.requested:,} more, active"
    cli.out.document(plain(done) | {"dry_run": dry_run}, text)


def _to(queue: str) -> BatchCallback | None:
    return BatchCallback(queue=queue) if queue else None


COLUMNS: list[Column[Batch]] = [
    Column("id", lambda batch: str(batch.id)),
    Column("name", lambda batch: batch.name),
    Column("state", lambda batch: batch.state.name.lower()),
    Column("total", lambda batch: f"{batch.total:,}", right=True),
    Column("pending", lambda batch: f"{batch.pending:,}", right=True),
    Column("done", lambda batch: f"{batch.done:,}", right=True),
    Column("dead", lambda batch: f"{batch.dead:,}", right=True),
    Column("cancelled", lambda batch: f"{batch.cancelled:,}", right=True),
    Column("expired", lambda batch: f"{batch.expired:,}", right=True),
    Column("deleted", lambda batch: f"{batch.deleted:,}", right=True),
]


def _show(cli: Cli, batch: Batch) -> None:
    cli.out.items([batch], plain, COLUMNS, none="")
