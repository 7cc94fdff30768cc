"""`jobline push`: stores jobs in a queue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

from jobline._enums import AckLevel
from jobline._times import parse_moment
from jobline.cli import limit_options as limit_option
from jobline.cli import options as option
from jobline.cli import payloads as source
from jobline.cli import unique_options as unique_option
from jobline.cli.command import JOBS, Cli, command
from jobline.cli.dependency_options import After, OnFailure, policy_of
from jobline.cli.exit_codes import UsageError
from jobline.cli.jobs import show_end
from jobline.cli.output import counted

if TYPE_CHECKING:
    from jobline import JobOptions

# `push_many` takes this many jobs with something of their own, such as a key.
_KEYED_JOBS_MAX = 1_000
# Options of jobs that are arguments of `push` as they are.
_AS_TYPED = (
    "group",
    "depends_on",
    "priority",
    "max_attempts",
    "lease",
    "ttl",
    "attempt_timeout",
    "content_type",
    "min_worker_version",
    "slots",
    "cost",
    "on_dead_head",
    "unique_mode",
    "unique_ttl",
    "unique_max_wait",
)

_Keys = tuple[str | None, str | None]
"""An idempotency key, and a unique key."""


@dataclass(frozen=True, slots=True)
class _Wish:
    """What all jobs of one push share."""

    queue: str
    options: JobOptions
    delay: float | None
    run_at: datetime | None
    level: AckLevel | None


def register(app: typer.Typer) -> None:
    """Adds `push`."""
    command(app, "push", rich_help_panel=JOBS)(push)


def push(  # noqa: PLR0913  # one argument an option of the command
    cli: Cli,
    queue: option.QueueName,
    payload: option.Payload = None,
    *,
    file: option.File = None,
    lines: option.Lines = False,
    count: option.Count = 1,
    key: option.Key = None,
    unique: unique_option.UniqueKey = None,
    unique_mode: unique_option.UniqueMode = None,
    unique_ttl: unique_option.UniqueTtl = None,
    unique_max_wait: unique_option.UniqueMaxWait = None,
    wait: option.Wait = None,
    name: option.Name = "",
    priority: option.Priority = None,
    delay: option.Delay = None,
    at: option.At = "",
    max_attempts: option.MaxAttempts = None,
    lease: option.Lease = None,
    lifo: option.Lifo = False,
    ttl: option.Ttl = None,
    attempt_timeout: option.AttemptTimeout = None,
    retry_until: option.RetryUntil = "",
    header: option.Headers = None,
    tag: option.Tags = None,
    group: option.GroupOption = None,
    sticky: option.Sticky = False,
    on_dead_head: limit_option.OnDeadHead = None,
    limiter: limit_option.Limiters = None,
    cost: limit_option.Cost = None,
    phase: option.Phases = None,
    depends_on: After = None,
    on_failure: OnFailure = "",
    content_type: option.ContentType = None,
    level: option.Level = "",
    once: option.Once = False,
    min_worker_version: option.MinWorkerVersion = None,
    slots: option.Slots = None,
) -> None:
    """Push jobs to a queue.

    The payload comes from the argument, --file or stdin; --lines makes one job of each line.
    """
    wish = _Wish(queue, _options(locals()), delay, _moment(at, "--at"), _level(level))
    _check(wish, lines=lines, count=count, wait=wait, keys=(key, unique))
    if lines:
        _push_lots(cli, wish, source.lines(payload, file), key=key, total=None)
    else:
        _push_copies(cli, wish, source.single(payload, file), count, keys=(key, unique), wait=wait)


def _options(arguments: dict[str, Any]) -> JobOptions:
    """Returns the options that the arguments of `push` say, by their names."""
    from jobline import JobOptions

    given: dict[str, Any] = {field: arguments[field] for field in _AS_TYPED} | {
        "name": arguments["name"] or None,
        "lifo": arguments["lifo"] or None,
        "sticky": arguments["sticky"] or None,
        "retry_until": _moment(arguments["retry_until"], "--retry-until"),
        "headers": _headers(arguments["header"] or []) or None,
        "tags": arguments["tag"],
        "limiters": arguments["limiter"],
        "phases": arguments["phase"],
        "on_dependency_failure": policy_of(arguments["on_failure"]),
        "delivery": "once" if arguments["once"] else None,
    }
    return JobOptions(**given)


def _push_copies(
    cli: Cli, wish: _Wish, payload: bytes, count: int, *, keys: _Keys, wait: float | None
) -> None:
    if count > 1:
        _push_lots(cli, wish, source.copies(payload, count), key=keys[0], total=count)
    else:
        _push_one(cli, wish, payload, keys, wait)


def _check(wish: _Wish, *, lines: bool, count: int, wait: float | None, keys: _Keys) -> None:
    for name, key in zip(("--key", "--unique"), keys, strict=True):
        if key == "":
            raise UsageError(f"{name}: is empty; leave it out for jobs without a key")
    if keys[1] is not None and (lines or count > 1):
        raise UsageError("--unique is for one job")
    for field in ("unique_mode", "unique_ttl", "unique_max_wait"):
        if keys[1] is None and getattr(wish.options, field) is not None:
            raise UsageError(f"--{field.replace('_', '-')}: only with --unique")
    if wish.options.on_dead_head is not None and wish.options.group is None:
        raise UsageError("--on-dead-head: only with --group")
    if wish.delay is not None and wish.run_at is not None:
        raise UsageError("--delay and --at: give one of them")
    if lines and count > 1:
        raise UsageError("--lines and --count: give one of them")
    if wait is not None and (lines or count > 1):
        raise UsageError("--wait is for one job; `jobline job wait` takes many ids")


def _push_one(
    cli: Cli,
    wish: _Wish,
    payload: bytes,
    keys: _Keys,
    wait: float | None,
) -> None:
    pushed = cli.client.push(
        wish.queue,
        payload,
        options=_typed(wish.options, [payload]),
        job_key=keys[0],
        unique_key=keys[1],
        delay=wish.delay,
        run_at=wish.run_at,
        ack_level=wish.level,
    )
    document = {"id": pushed.id, "outcome": pushed.outcome.name, "ack_level": pushed.ack_level.name}
    if wait is None:
        cli.out.document(document, f"{pushed.id}  {pushed.outcome.name}  {pushed.ack_level.name}")
        return
    cli.out.note(f"job {pushed.id}: waiting for its end")
    show_end(cli, cli.client.wait_one(pushed.id, timeout=wait))


def _push_lots(
    cli: Cli, wish: _Wish, payloads: Iterable[bytes], *, key: str | None, total: int | None
) -> None:
    pushed = duplicates = 0
    with cli.out.progress(f"pushing to {wish.queue}", total) as advance:
        for batch in source.calls(payloads):
            if key:
                duplicates += _push_keyed(cli, wish, batch, key, pushed)
            else:
                _push_plain(cli, wish, batch)
            pushed += len(batch)
            advance(len(batch))
    if not cli.out.as_json:
        already = f", {duplicates:,} of them known already" if duplicates else ""
        cli.out.console.print(f"{counted(pushed, 'job')} to {wish.queue}{already}", markup=False)


def _push_plain(cli: Cli, wish: _Wish, batch: list[bytes]) -> None:
    lot = cli.client.push_payloads(
        wish.queue,
        batch,
        options=_typed(wish.options, batch),
        delay=wish.delay,
        run_at=wish.run_at,
        ack_level=wish.level,
    )
    if cli.out.as_json:
        cli.out.line(
            {"first_id": lot.first_id, "count": lot.count, "ack_level": lot.ack_level.name}
        )


def _push_keyed(cli: Cli, wish: _Wish, batch: list[bytes], key: str, before: int) -> int:
    """Pushes jobs that have a key each; returns how many were known already."""
    from jobline import NewJob

    known = 0
    for start in range(0, len(batch), _KEYED_JOBS_MAX):
        part = batch[start : start + _KEYED_JOBS_MAX]
        first = before + start + 1
        jobs = [NewJob(one, job_key=f"{key}-{number}") for number, one in enumerate(part, first)]
        pushed = cli.client.push_many(
            wish.queue,
            jobs,
            options=_typed(wish.options, part),
            delay=wish.delay,
            run_at=wish.run_at,
            ack_level=wish.level,
        )
        known += sum(one.duplicate for one in pushed)
        if cli.out.as_json:
            for one in pushed:
                cli.out.line({"id": one.id, "outcome": one.outcome.name})
    return known


def _typed(options: JobOptions, payloads: list[bytes]) -> JobOptions:
    if options.content_type is not None:
        return options
    return options.replaced(content_type=source.content_type_of(payloads) or None)


def _headers(words: list[str]) -> dict[str, str]:
    headers = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UsageError(f"{word!r} is not KEY=VALUE")
        headers[key] = value
    return headers


def _moment(text: str, flag: str) -> datetime | None:
    try:
        return parse_moment(text) if text else None
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from None


def _level(text: str) -> AckLevel | None:
    if not text:
        return None
    try:
        return AckLevel[text.upper()]
    except KeyError:
        raise UsageError(f"--level: {text!r} is not memory, buffered or fsynced") from None
