"""`jobline schedule …`: jobs that are pushed again and again, by the clock."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jobline._schedule_values import Schedule
from jobline._times import to_timestamp
from jobline.cli import completion
from jobline.cli import options as option
from jobline.cli import payloads as source
from jobline.cli.as_json import plain
from jobline.cli.command import QUEUES, Cli, command
from jobline.cli.durations import show_moment, show_span
from jobline.cli.exit_codes import UsageError
from jobline.cli.job_options import moment_of
from jobline.cli.output import Column

Name = Annotated[
    str,
    typer.Argument(metavar="SCHEDULE", help="The schedule.", autocompletion=completion.schedules),
]
AnyName = Annotated[
    str | None,
    typer.Argument(metavar="SCHEDULE", help="The schedule.", autocompletion=completion.schedules),
]
Prefix = Annotated[
    str, typer.Argument(metavar="PREFIX", help="Only schedules whose names start with this.")
]
OfQueue = Annotated[str, typer.Option("--queue", metavar="QUEUE", help="Only those of a queue.")]
Cron = Annotated[
    str | None, typer.Option("--cron", metavar="CRON", help="When: '0 6 * * 1-5', or @daily.")
]
Every = Annotated[
    float | None,
    typer.Option("--every", parser=option.span, metavar="SPAN", help="Or how often: 90s, 1h30m."),
]
Zone = Annotated[
    str | None, typer.Option("--time-zone", metavar="ZONE", help="Of --cron: Europe/Berlin.")
]
Start = Annotated[str, typer.Option("--start", metavar="TIME", help="No run before.")]
End = Annotated[str, typer.Option("--end", metavar="TIME", help="No run after.")]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, metavar="N", help="How many jobs in all.")
]
Immediately = Annotated[bool, typer.Option("--immediately", help="Also run now.")]
Jitter = Annotated[
    float | None,
    typer.Option("--jitter", parser=option.span, metavar="SPAN", help="Start up to this later."),
]
NeedsWorker = Annotated[
    bool, typer.Option("--skip-if-no-worker", help="Skip runs while no worker handles them.")
]
Overlap = Annotated[
    str | None,
    typer.Option(
        "--overlap",
        metavar="WHAT",
        help="While the last job is unfinished: skip, allow, replace, buffer_one.",
    ),
]
Missed = Annotated[
    str | None,
    typer.Option("--missed", metavar="WHAT", help="With missed runs: skip, once, all."),
]
Upsert = Annotated[bool, typer.Option("--upsert", help="Change it if it exists.")]
Runs = Annotated[int, typer.Option("--count", "-n", min=1, max=1_000, help="How many runs.")]


def register(app: typer.Typer) -> None:
    """Adds `schedule` and its verbs."""
    schedules = typer.Typer(help="Schedules: look, create, pause, run.", no_args_is_help=True)
    app.add_typer(schedules, name="schedule", rich_help_panel=QUEUES)
    command(schedules, "ls")(ls)
    command(schedules, "get")(get)
    command(schedules, "create")(create)
    command(schedules, "update")(update)
    command(schedules, "pause")(pause)
    command(schedules, "resume")(resume)
    command(schedules, "trigger")(trigger)
    command(schedules, "preview")(preview)
    command(schedules, "rm")(rm)


def ls(cli: Cli, prefix: Prefix = "", *, queue: OfQueue = "") -> None:
    """List schedules."""
    found = cli.client.schedules.list(prefix, queue=queue)
    cli.out.items(found, plain, COLUMNS, none="No schedules yet.")


def get(cli: Cli, schedule: Name) -> None:
    """Show one schedule."""
    _show(cli, cli.client.schedules.get(schedule))


def create(  # noqa: PLR0913  # one argument an option of the command
    cli: Cli,
    schedule: Name,
    queue: option.QueueName,
    payload: option.Payload = None,
    *,
    file: option.File = None,
    name: option.Name = "",
    cron: Cron = None,
    every: Every = None,
    time_zone: Zone = None,
    start: Start = "",
    end: End = "",
    limit: Limit = None,
    immediately: Immediately = False,
    jitter: Jitter = None,
    skip_if_no_worker: NeedsWorker = False,
    overlap: Overlap = None,
    missed: Missed = None,
    upsert: Upsert = False,
    reason: option.Why = "",
) -> None:
    """Create a schedule that pushes a job: by --cron, or --every so often."""
    from jobline import NewJob

    how = _settings_of(locals())
    data = source.single(payload, file) if payload is not None or file is not None else b""
    job = NewJob(data, name=name or None, content_type=source.content_type_of([data]) or None)
    if cron is None and every is None:
        raise UsageError("--cron or --every: give one of them")
    made = cli.client.schedules.create(schedule, queue, job, upsert=upsert, reason=reason, **how)
    _show(cli, made)


def update(  # noqa: PLR0913  # one argument an option of the command
    cli: Cli,
    schedule: Name,
    *,
    cron: Cron = None,
    every: Every = None,
    time_zone: Zone = None,
    start: Start = "",
    end: End = "",
    limit: Limit = None,
    jitter: Jitter = None,
    overlap: Overlap = None,
    missed: Missed = None,
    reason: option.Why = "",
) -> None:
    """Change settings of a schedule: those that are given."""
    _show(cli, cli.client.schedules.update(schedule, reason=reason, **_settings_of(locals())))


def pause(cli: Cli, schedule: Name, *, reason: option.Why = "") -> None:
    """Pause a schedule: its times pass, and are not missed."""
    _show(cli, cli.client.schedules.pause(schedule, reason=reason))


def resume(cli: Cli, schedule: Name, *, reason: option.Why = "") -> None:
    """Resume a schedule."""
    _show(cli, cli.client.schedules.resume(schedule, reason=reason))


def trigger(cli: Cli, schedule: Name, *, reason: option.Why = "") -> None:
    """Run a schedule now, beside its times."""
    made = cli.client.schedules.trigger(schedule, reason=reason)
    if made.job_id:
        text = f"job {made.job_id} pushed"
    elif made.skipped:
        text = f"skipped: {made.skipped.name}"
    else:
        text = "it runs when its last job has ended"
    document = {
        "job_id": made.job_id or None,
        "skipped": made.skipped.name if made.skipped else None,
    }
    cli.out.document(document, text)


def preview(  # noqa: PLR0913  # one argument an option of the command
    cli: Cli,
    schedule: AnyName = None,
    *,
    count: Runs = 10,
    cron: Cron = None,
    every: Every = None,
    time_zone: Zone = None,
    start: Start = "",
    end: End = "",
) -> None:
    """Show the next runs of a schedule, or of a timing that is not stored."""
    how = _settings_of(locals())
    if (schedule is None) is not bool(how):
        raise UsageError("preview: give the name of a schedule, or --cron or --every")
    runs = cli.client.schedules.preview(schedule, count=count, **how)
    cli.out.items(
        runs, lambda run: {"run": to_timestamp(run).ToJsonString()}, RUNS, none="It never runs."
    )


def rm(cli: Cli, schedule: Name, *, yes: option.Yes = False, reason: option.Why = "") -> None:
    """Delete a schedule; its jobs stay."""
    cli.confirm(f"Delete the schedule {schedule}?", yes=yes, or_else="")
    cli.client.schedules.delete(schedule, reason=reason)
    cli.out.document({"schedule": schedule}, f"the schedule {schedule} deleted")


_AS_TYPED = ("cron", "every", "time_zone", "limit", "jitter", "overlap", "missed")
_FLAGS = ("immediately", "skip_if_no_worker")


def _settings_of(said: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings that the arguments of a command say, by their names."""
    how = {name: said[name] for name in _AS_TYPED if said.get(name) is not None}
    how |= {name: True for name in _FLAGS if said.get(name)}
    for name in ("start", "end"):
        if said[name]:
            how[name] = moment_of(said[name], f"--{name}")
    return how


def _timing(schedule: Schedule) -> str:
    settings = schedule.settings
    if settings.every is not None:
        return f"every {show_span(settings.every.total_seconds())}"
    return f"{settings.cron} {settings.time_zone or 'UTC'}"


def _last(schedule: Schedule) -> str:
    run = schedule.last_run
    if run is None:
        return ""
    state = run.state.name.lower() if run.state else "deleted"
    return f"{show_moment(run.fired_at)} {state}"


def _remarks(schedule: Schedule) -> str:
    if schedule.paused:
        return f"paused: {schedule.pause_reason}" if schedule.pause_reason else "paused"
    if schedule.waiting_run_at is not None:
        return "a run waits for the last job"
    return "" if schedule.next_run_at is not None else "over"


COLUMNS: list[Column[Schedule]] = [
    Column("schedule", lambda schedule: schedule.name),
    Column("queue", lambda schedule: schedule.settings.queue),
    Column("runs", _timing),
    Column("next", lambda schedule: show_moment(schedule.next_run_at)),
    Column("pushed", lambda schedule: f"{schedule.count:,}", right=True),
    Column("skipped", lambda schedule: f"{schedule.skipped_count:,}", right=True),
    Column("last", _last),
    Column("", _remarks),
]
RUNS: list[Column[Any]] = [Column("run", show_moment)]


def _show(cli: Cli, schedule: Schedule) -> None:
    cli.out.items([schedule], plain, COLUMNS, none="")
