"""`jobline job …`: look at jobs, wait for them, and move them by hand."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from jobline._filter_words import parse
from jobline.cli import job_view
from jobline.cli import options as option
from jobline.cli import unique_options as unique_option
from jobline.cli.as_json import plain, text_of
from jobline.cli.bulk import Verb, carry_out
from jobline.cli.command import JOBS, Cli, command
from jobline.cli.durations import show_moment
from jobline.cli.exit_codes import Exit, UsageError
from jobline.cli.job_follow import follow
from jobline.cli.job_logs import logs
from jobline.cli.job_update import forget_key, update
from jobline.cli.selection import choose, id_of, job_filter, state_name

if TYPE_CHECKING:
    from jobline import JobEnd

_PAGE = 500


def register(app: typer.Typer) -> None:
    """Adds `job` and its verbs."""
    jobs = typer.Typer(help="Jobs: look, wait, cancel, retry.", no_args_is_help=True)
    app.add_typer(jobs, name="job", rich_help_panel=JOBS)
    command(jobs, "get")(get)
    command(jobs, "ls")(ls)
    command(jobs, "logs")(logs)
    command(jobs, "follow")(follow)
    command(jobs, "wait")(wait)
    command(jobs, "explain")(explain)
    command(jobs, "update")(update)
    command(jobs, "forget-key")(forget_key)
    command(jobs, "cancel")(cancel)
    command(jobs, "retry")(retry)
    command(jobs, "promote")(promote)
    command(jobs, "rm")(rm)


def get(
    cli: Cli,
    job: option.JobOrQueue,
    key: option.KeyArgument = None,
    *,
    unique: unique_option.IsUnique = False,
) -> None:
    """Show one job with its attempts: by id, or by QUEUE and KEY."""
    if key is not None and unique:
        found = cli.client.jobs.get_by_unique_key(job, key)
    elif key is not None:
        found = cli.client.jobs.get_by_key(job, key)
    elif job.isdecimal():
        found = cli.client.jobs.get(id_of(job))
    else:
        raise UsageError(f"{job!r} is not an id; for a job by its key give QUEUE and KEY")
    cli.out.document(plain(found), job_view.full(found, cli.now()))


def ls(
    cli: Cli,
    words: option.Words = None,
    *,
    limit: option.Limit = 50,
    payloads: option.Payloads = False,
) -> None:
    """List jobs, oldest first, chosen by filter words."""
    where = job_filter(parse(words or [], cli.now()))
    page = min(limit + 1, _PAGE) if limit else _PAGE
    found = cli.client.jobs.list(where, include_payloads=payloads, page_size=page)
    columns = job_view.columns(cli.now(), payloads)
    more = "--limit, or narrower words"
    cli.out.items(found, plain, columns, none="No such jobs.", limit=limit, narrower=more)


def wait(cli: Cli, ids: option.JobIds, *, timeout: option.Timeout = 60.0) -> None:
    """Wait for jobs to end, and show how each one did.

    Ends with 0 if all completed, 3 if one is not there, 6 if one did not complete, 7 if one has not
    ended in time; the highest counts. With --json a job that has not ended is a line, too, with
    `timed_out`.
    """
    left = set(ids)
    worst = Exit.OK
    with cli.out.progress("waiting", len(left)) as advance:
        for end in cli.client.wait(*left, timeout=timeout):
            left.discard(end.id)
            worst = max(worst, _exit_of(end))
            advance(1)
            _print_end(cli, end)
    if left:
        if cli.out.as_json:
            for job_id in sorted(left):
                cli.out.line(_open_as_json(job_id))
        cli.out.note(f"not ended yet: {' '.join(map(str, sorted(left)))}")
        raise typer.Exit(Exit.TIMED_OUT)
    if worst:
        raise typer.Exit(worst)


def _exit_of(end: JobEnd) -> Exit:
    if end.not_found:
        return Exit.NOT_FOUND
    return Exit.OK if end.ok else Exit.NOT_DONE


def explain(cli: Cli, job: option.JobId) -> None:
    """Say why a job is not running."""
    explanation = cli.client.jobs.explain(job)
    sentences = [f"{job} is {state_name(explanation.state)}"]
    sentences += [
        f"  · {job_view.obstacle_text(obstacle, cli.now())}" for obstacle in explanation.obstacles
    ]
    if not explanation.obstacles:
        sentences.append("  · nothing keeps it: it is about to be handed out")
    cli.out.document(plain(explanation), "\n".join(sentences))


def cancel(
    cli: Cli,
    jobs: option.Selection = None,
    *,
    everything: option.Everything = False,
    below: option.Below = False,
    dry_run: option.DryRun = False,
    yes: option.Yes = False,
    reason: option.Why = "",
) -> None:
    """Cancel jobs: waiting ones at once, active ones when their worker settles them."""
    chosen = choose(jobs, everything=everything, now=cli.now())
    cancel_jobs = partial(cli.client.jobs.cancel, below=below)
    verb = Verb("cancel", "cancelled", cancel_jobs, destructive=True)
    carry_out(cli, verb, chosen, dry_run=dry_run, yes=yes, reason=reason)


def retry(
    cli: Cli,
    jobs: option.Selection = None,
    *,
    everything: option.Everything = False,
    dry_run: option.DryRun = False,
    reason: option.Why = "",
) -> None:
    """Put ended jobs back: dead, cancelled, expired and completed ones alike."""
    chosen = choose(jobs, everything=everything, now=cli.now())
    verb = Verb("retry", "put back", cli.client.jobs.retry)
    carry_out(cli, verb, chosen, dry_run=dry_run, yes=True, reason=reason)


def promote(
    cli: Cli,
    jobs: option.Selection = None,
    *,
    everything: option.Everything = False,
    dry_run: option.DryRun = False,
    reason: option.Why = "",
) -> None:
    """Make scheduled jobs ready now."""
    chosen = choose(jobs, everything=everything, now=cli.now())
    verb = Verb("promote", "made ready", cli.client.jobs.promote)
    carry_out(cli, verb, chosen, dry_run=dry_run, yes=True, reason=reason)


def rm(
    cli: Cli,
    jobs: option.Selection = None,
    *,
    everything: option.Everything = False,
    dry_run: option.DryRun = False,
    yes: option.Yes = False,
    reason: option.Why = "",
) -> None:
    """Delete jobs that wait or have ended."""
    chosen = choose(jobs, everything=everything, now=cli.now())
    verb = Verb("delete", "deleted", cli.client.jobs.delete, destructive=True)
    carry_out(cli, verb, chosen, dry_run=dry_run, yes=yes, reason=reason)


def show_end(cli: Cli, end: JobEnd) -> None:
    """Shows how a job ended, its result first; the exit code says whether it completed."""
    if cli.out.as_json:
        cli.out.line(end_as_json(end))
    elif end.ok:
        cli.out.console.print(_result_text(end), markup=False)
    if not end.ok:
        raise end.exception()


def end_as_json(end: JobEnd) -> dict[str, Any]:
    """How a job ended, as plain values."""
    return {
        "id": end.id,
        "state": None if end.not_found else end.state.name,
        "result": text_of(end.result),
        "reason": end.reason.name if end.reason else None,
        "error": None
        if end.error is None
        else {"type": end.error.type, "message": end.error.message},
        "ended_at": None if end.ended_at is None else end.ended_at.isoformat(),
        "not_found": end.not_found,
        "timed_out": False,
    }


def _open_as_json(job_id: int) -> dict[str, Any]:
    """The same of a job that has not ended in time."""
    unknown = dict.fromkeys(("state", "result", "reason", "error", "ended_at"))
    return {"id": job_id, **unknown, "not_found": False, "timed_out": True}


def _print_end(cli: Cli, end: JobEnd) -> None:
    if cli.out.as_json:
        cli.out.line(end_as_json(end))
    elif end.not_found:
        cli.out.console.print(f"{end.id}  no such job, or its retention has passed")
    else:
        why = "" if end.error is None else f"{end.error.type}: {end.error.message}"
        parts = [str(end.id), end.state.name, show_moment(end.ended_at), _result_text(end), why]
        cli.out.console.print("  ".join(part for part in parts if part), markup=False)


def _result_text(end: JobEnd) -> str:
    shown = text_of(end.result)
    return shown if isinstance(shown, str) else f"({len(end.result)} bytes)"
