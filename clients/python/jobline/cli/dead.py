"""`jobline dead …`: jobs that could not be done."""

from __future__ import annotations

from datetime import datetime

import typer

from jobline._enums import JobState
from jobline._filter_words import parse
from jobline._job_values import DeadCount, Job
from jobline.cli import options as option
from jobline.cli.as_json import plain
from jobline.cli.bulk import Verb, carry_out
from jobline.cli.command import JOBS, Cli, command
from jobline.cli.durations import show_ago
from jobline.cli.exit_codes import UsageError
from jobline.cli.job_view import bytes_text, error_text
from jobline.cli.output import Column, counted
from jobline.cli.selection import Chosen, choose, dead_filter, needs_ids, reason_name

_PAGE = 500
_ERROR_SHOWN = 80


def register(app: typer.Typer) -> None:
    """Adds `dead` and its verbs."""
    dead = typer.Typer(
        help="Dead letters, jobs that could not be done: look, put back, purge.",
        no_args_is_help=True,
    )
    app.add_typer(dead, name="dead", rich_help_panel=JOBS)
    command(dead, "ls")(ls)
    command(dead, "stats")(stats)
    command(dead, "retry")(retry)
    command(dead, "purge")(purge)


def ls(
    cli: Cli,
    words: option.Words = None,
    *,
    limit: option.Limit = 50,
    payloads: option.Payloads = False,
) -> None:
    """List dead jobs; `older:` and `newer:` mean their death."""
    where = dead_filter(parse(words or [], cli.now()))
    page = min(limit + 1, _PAGE) if limit else _PAGE
    found = cli.client.dead.list(where, include_payloads=payloads, page_size=page)
    columns = _columns(cli.now(), payloads)
    more = "--limit, or narrower words"
    cli.out.items(found, plain, columns, none="No dead jobs.", limit=limit, narrower=more)


def stats(cli: Cli, queue: option.OneQueue = "") -> None:
    """Count dead jobs by queue, name, reason and error."""
    answer = cli.client.dead.stats(queue)
    if cli.out.as_json:
        cli.out.line(plain(answer))
        return
    if cli.out.items(answer.counts, plain, _counts(cli.now()), none="No dead jobs."):
        cli.out.note(f"{answer.total:,} in all")


def retry(
    cli: Cli,
    jobs: option.Selection = None,
    *,
    everything: option.Everything = False,
    dry_run: option.DryRun = False,
    reason: option.Why = "",
) -> None:
    """Put dead jobs back, chosen by ids or words."""
    chosen = _narrowed(cli, choose(jobs, everything=everything, now=cli.now()))
    verb = Verb("retry", "put back", cli.client.jobs.retry)
    if chosen is not None:
        carry_out(cli, verb, chosen, dry_run=dry_run, yes=True, reason=reason)


def purge(
    cli: Cli,
    words: option.Words = None,
    *,
    everything: option.Everything = False,
    dry_run: option.DryRun = False,
    yes: option.Yes = False,
    reason: option.Why = "",
) -> None:
    """Delete dead jobs, chosen by words."""
    chosen = choose(words, everything=everything, now=cli.now(), takes="filter words")
    if chosen.ids:
        raise UsageError("purge takes filter words; for ids use `jobline job rm`")
    where = dead_filter(chosen.words)
    if not dry_run and not yes:
        count = cli.client.dead.purge(where, everything=everything, dry_run=True).count
        cli.confirm(f"Delete {counted(count, 'dead job')}?", yes=not count)
    answer = cli.client.dead.purge(where, everything=everything, dry_run=dry_run, reason=reason)
    value = {"count": answer.count, "operation_id": answer.operation_id, "dry_run": dry_run}
    would = "would be " if dry_run else ""
    cli.out.document(value, f"{counted(answer.count, 'dead job')} {would}deleted")


def _narrowed(cli: Cli, chosen: Chosen) -> Chosen | None:
    """The same choice among dead jobs only: retrying takes a filter of jobs, which knows no reasons
    and no times of death, so those are looked up and become ids. None: there are none.
    """
    if chosen.ids:
        return chosen
    if not needs_ids(chosen.words):
        dead_filter(chosen.words)  # refuses what dead jobs cannot be asked for
        return Chosen((), chosen.words | {"state": [JobState.DEAD]})
    found = cli.client.dead.list(dead_filter(chosen.words), page_size=_PAGE)
    ids = tuple(job.id for job in found)
    if not ids:
        cli.out.document({"count": 0, "skipped_ids": []}, "No such dead jobs.")
        return None
    return Chosen(ids, {})


def _columns(now: datetime, payloads: bool) -> list[Column[Job]]:
    shown: list[Column[Job]] = [
        Column("id", lambda job: str(job.id), right=True),
        Column("queue", lambda job: job.queue),
        Column("name", lambda job: job.name, from_width=80),
        Column("reason", lambda job: reason_name(job.reason), from_width=80),
        Column("attempts", lambda job: str(job.attempts), right=True, from_width=100),
        Column("died", lambda job: show_ago(job.ended_at, now)),
        Column(
            "error", lambda job: bytes_text(error_text(job).encode(), _ERROR_SHOWN), yields=True
        ),
    ]
    if payloads:
        shown.append(Column("payload", lambda job: bytes_text(job.payload, _ERROR_SHOWN)))
    return shown


def _counts(now: datetime) -> list[Column[DeadCount]]:
    return [
        Column("count", lambda one: f"{one.count:,}", right=True),
        Column("queue", lambda one: one.queue),
        Column("name", lambda one: one.name),
        Column("reason", lambda one: reason_name(one.reason)),
        Column("error", lambda one: one.error_type),
        Column("first", lambda one: show_ago(one.oldest_at, now)),
        Column("last", lambda one: show_ago(one.newest_at, now)),
    ]
