"""Jobs as text for people: a row of a list, or every detail."""

from __future__ import annotations

from datetime import datetime, timedelta

from rich.console import Group, RenderableType
from rich.text import Text

from jobline._enums import ObstacleKind
from jobline._job_values import Attempt, Job, Obstacle
from jobline._phases import Phase
from jobline._printable import printable
from jobline._values import JobError
from jobline.cli.as_json import text_of
from jobline.cli.durations import show_ago, show_clock, show_moment, show_span
from jobline.cli.output import Column, counted, pairs, table
from jobline.cli.selection import reason_name, state_name

_PAYLOAD_SHOWN = 60
_IDS_SHOWN = 10


def columns(now: datetime, payloads: bool) -> list[Column[Job]]:
    """The columns of a list of jobs."""
    shown: list[Column[Job]] = [
        Column("id", lambda job: str(job.id), right=True),
        Column("queue", lambda job: job.queue),
        Column("name", lambda job: job.name, from_width=80),
        Column("state", lambda job: state_name(job.state)),
        Column("attempts", lambda job: str(job.attempts), right=True, from_width=80),
        Column("pushed", lambda job: show_ago(job.pushed_at, now)),
        Column("worker", lambda job: job.worker, from_width=100),
        Column("what", _what, yields=True),
    ]
    if payloads:
        shown.append(Column("payload", lambda job: bytes_text(job.payload, _PAYLOAD_SHOWN)))
    return shown


def full(job: Job, now: datetime) -> RenderableType:
    """Everything about one job."""
    options = job.options
    headers = "  ".join(f"{key}={value}" for key, value in sorted((options.headers or {}).items()))
    rows = [
        ("id", str(job.id)),
        ("queue", job.queue),
        ("name", job.name),
        ("state", " ".join(filter(None, [state_name(job.state), reason_name(job.reason)]))),
        ("cancel", "asked for; its worker has not settled it yet" if job.cancel_requested else ""),
        ("key", job.job_key),
        ("unique", _unique(job, now)),
        ("priority", "" if options.priority is None else str(options.priority)),
        ("attempts", _attempts(job)),
        ("pushed", _when(job.pushed_at, now)),
        ("runs", _when(job.run_at, now)),
        ("ttl ends", _when(job.ttl_ends_at, now)),
        ("depends on", _depends_on(job)),
        ("blocked until", _when(job.blocked_until, now)),
        ("worker", job.worker),
        ("delivery", str(job.delivery) if job.delivery else ""),
        ("lease until", _when(job.lease_until, now)),
        ("times out", _when(job.times_out_at, now)),
        ("progress", _progress(job)),
        ("log", f"{counted(job.log_lines, 'line')}: `job logs`" if job.log_lines else ""),
        ("ended", _when(job.ended_at, now)),
        ("put back", _retry(job, now)),
        ("expires", _when(job.expires_at, now)),
        ("content", f"{job.payload_bytes:,} bytes {job.content_type}".rstrip()),
        ("headers", headers),
        ("group", f"{options.group or ''}{', sticky' if options.sticky else ''}"),
        ("batch", str(options.batch_id or "")),
        ("webhook", options.webhook or ""),
        ("tags", "  ".join(options.tags or ())),
        ("payload", bytes_text(job.payload)),
        ("checkpoint", bytes_text(job.checkpoint)),
        ("result", bytes_text(job.result)),
        ("error", error_text(job)),
    ]
    parts: list[RenderableType] = [pairs(rows)]
    if job.phases:
        parts += ["", table(job.phases, _PHASES)]
    if job.history:
        parts += ["", table(job.history, _ATTEMPTS)]
    if job.error is not None and job.error.stack:
        parts += ["", Text(printable(job.error.stack.rstrip()), style="dim")]
    return Group(*parts)


def _unique(job: Job, now: datetime) -> str:
    """The unique key, and what holds of it."""
    mode = job.options.unique_mode
    words = [job.unique_key, "" if mode is None else str(getattr(mode, "name", mode)).lower()]
    until = _when(job.unique_until, now)
    return "  ".join(filter(None, [*words, until and f"until {until}"])) if job.unique_key else ""


def span_text(span: timedelta | None) -> str:
    """A span as people read it, "" where there is none."""
    return "" if span is None else show_span(span.total_seconds())


def bytes_text(data: bytes, most: int = 2_000) -> str:
    """Bytes as a person reads them, cut where they get long."""
    if not data:
        return ""
    text = text_of(data)
    if not isinstance(text, str):
        return f"({len(data):,} bytes, not text)"
    return text if len(text) <= most else f"{text[:most]}… ({len(data):,} bytes)"


def error_text(job: Job) -> str:
    """The last error in one line."""
    return _in_a_line(job.error)


def _in_a_line(error: JobError | None) -> str:
    return "" if error is None else ": ".join(filter(None, [error.type, error.message]))


def _attempts(job: Job) -> str:
    """How many there were, and how those went that did not simply complete."""
    went = [(job.failed, "failed"), (job.stalls, "stalled"), (job.releases, "released")]
    said = ", ".join(f"{count:,} {how}" for count, how in went if count)
    return f"{job.attempts:,} ({said})" if said else f"{job.attempts:,}"


def _depends_on(job: Job) -> str:
    """The first jobs that it depends on, and how many of all it still waits for."""
    parents = tuple(job.options.depends_on or ())
    ids = "  ".join(map(str, parents[:_IDS_SHOWN]))
    more = " …" if len(parents) > _IDS_SHOWN else ""
    left = f" ({job.depends_on_left:,} of {len(parents):,} left)"
    return f"{ids}{more}{left if job.depends_on_left else ''}"


def _what(job: Job) -> str:
    if job.error is not None:
        return bytes_text(error_text(job).encode(), _PAYLOAD_SHOWN)
    return _progress(job)


def _progress(job: Job) -> str:
    if not job.progress and not job.progress_message:
        return ""
    return f"{job.progress:.0f} % {job.progress_message}".rstrip()


def obstacle_text(obstacle: Obstacle, now: datetime) -> str:
    """What keeps a job, and when that ends where it is known."""
    if obstacle.until is None:
        return obstacle.message
    ends = "its lease ends" if obstacle.kind is ObstacleKind.RUNNING else "due"
    left = round((obstacle.until - now).total_seconds())
    moment = show_span(left) if left > 0 else ""
    return (
        f"{obstacle.message}: {ends} {f'in {moment}' if moment else 'now'} "
        f"({show_clock(obstacle.until, now)})"
    )


def _retry(job: Job, now: datetime) -> str:
    """When a dead job is put back by itself, and how often any job was."""
    before = f"{job.auto_retries} by itself before" if job.auto_retries else ""
    return ", ".join(filter(None, [_when(job.retry_at, now), before]))


def _when(moment: datetime | None, now: datetime) -> str:
    return "" if moment is None else f"{show_moment(moment)} ({show_ago(moment, now)})"


def _took(attempt: Attempt) -> str:
    begun, ended = attempt.leased_at, attempt.ended_at
    return "" if begun is None or ended is None else show_span((ended - begun).total_seconds())


def _phase_says(phase: Phase) -> str:
    if phase.error is not None:
        return _in_a_line(phase.error)
    return phase.message or bytes_text(phase.result, _PAYLOAD_SHOWN)


_PHASES: list[Column[Phase]] = [
    Column("phase", lambda one: one.name),
    Column("state", lambda one: one.state.name.lower()),
    Column("done", lambda one: f"{one.progress:.0f} %", right=True),
    Column("attempt", lambda one: str(one.attempt or ""), right=True),
    Column("ended", lambda one: show_moment(one.ended_at)),
    Column("what", _phase_says),
]
_ATTEMPTS: list[Column[Attempt]] = [
    Column("attempt", lambda one: str(one.attempt), right=True),
    Column(
        "how",
        lambda one: one.outcome.name.lower(),
    ),
    Column("worker", lambda one: one.worker),
    Column("began", lambda one: show_moment(one.leased_at)),
    Column("took", _took, right=True),
    Column("error", lambda one: _in_a_line(one.error)),
]
