"""`jobline push`: stores jobs in a queue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import typer

from jobline._enums import AckLevel
from jobline.cli import dependency_options as dependency_option
from jobline.cli import limit_options as limit_option
from jobline.cli import options as option
from jobline.cli import payloads as source
from jobline.cli import retry_options as retry_option
from jobline.cli import unique_options as unique_option
from jobline.cli.command import JOBS, Cli, command
from jobline.cli.exit_codes import UsageError
from jobline.cli.job_options import level_of, moment_of, options_of
from jobline.cli.jobs import show_end
from jobline.cli.output import counted

if TYPE_CHECKING:
    from jobline import JobOptions

# `push_many` takes this many jobs with something of their own, such as a key.
_KEYED_JOBS_MAX = 1_000
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
    spread: float | None


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
    spread: limit_option.Spread = None,
    at: option.At = "",
    max_attempts: retry_option.MaxAttempts = None,
    max_stalls: retry_option.MaxStalls = None,
    backoff: retry_option.BackoffWords = "",
    retention: retry_option.RetentionWords = "",
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
    batch_id: limit_option.Batch = None,
    webhook: limit_option.Webhook = None,
    phase: option.Phases = None,
    depends_on: dependency_option.After = None,
    on_failure: dependency_option.OnFailure = "",
    block_timeout: dependency_option.BlockTimeout = None,
    content_type: option.ContentType = None,
    level: option.Level = "",
    once: option.Once = False,
    min_worker_version: option.MinWorkerVersion = None,
    slots: option.Slots = None,
) -> None:
    """Push jobs to a queue.

    The payload comes from the argument, --file or stdin; --lines makes one job of each line."""
    _carry_out(cli, queue, locals())


def _carry_out(cli: Cli, queue: str, said: dict[str, Any]) -> None:
    """Pushes what the arguments of `push` say, by their names."""
    run_at, level = moment_of(said["at"], "--run-at"), level_of(said["level"])
    wish = _Wish(queue, options_of(said), said["delay"], run_at, level, said["spread"])
    lines, count, wait, keys = (
        said["lines"],
        said["count"],
        said["wait"],
        (said["key"], said["unique"]),
    )
    _check(wish, lines=lines, count=count, wait=wait, keys=keys)
    payload, file = said["payload"], said["file"]
    if lines:
        _push_lots(cli, wish, source.lines(payload, file), key=keys[0], total=None)
    else:
        _push_copies(cli, wish, source.single(payload, file), count, keys=keys, wait=wait)


def _push_copies(
    cli: Cli, wish: _Wish, payload: bytes, count: int, *, keys: _Keys, wait: float | None
) -> None:
    if count > 1:
        _push_lots(cli, wish, source.copies(payload, count), key=keys[0], total=count)
    else:
        _push_one(cli, wish, payload, keys, wait)


def _check(wish: _Wish, *, lines: bool, count: int, wait: float | None, keys: _Keys) -> None:
    for name, key in zip(("--job-key", "--unique-key"), keys, strict=True):
        if key == "":
            raise UsageError(f"{name}: is empty; leave it out for jobs without a key")
    is_many = lines or count > 1
    if keys[1] is not None and is_many:
        raise UsageError("--unique-key is for one job")
    _check_companions(wish.options, keys[1])
    if wish.delay is not None and wish.run_at is not None:
        raise UsageError("--delay and --run-at: give one of them")
    if lines and count > 1:
        raise UsageError("--lines and --count: give one of them")
    if wish.spread is not None and not is_many:
        raise UsageError("--spread: only with --lines or --count")
    if wait is not None and is_many:
        raise UsageError("--wait is for one job; `jobline job wait` takes many ids")


def _check_companions(options: JobOptions, unique_key: str | None) -> None:
    """Refuses options that mean nothing without another one."""
    companions = (
        ("--unique-key", unique_key, ("unique_mode", "unique_ttl", "unique_max_wait")),
        ("--group", options.group, ("on_dead_head", "sticky")),
    )
    for companion, given, fields in companions:
        for field in fields:
            if given is None and getattr(options, field) is not None:
                raise UsageError(f"--{field.replace('_', '-')}: only with {companion}")


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
    if wish.spread is not None:
        payloads = _spreadable(payloads)
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


def _spreadable(payloads: Iterable[bytes]) -> list[bytes]:
    """Returns jobs that are spread, which go in one call. Raises UsageError for too many."""
    listed = list(islice(payloads, _KEYED_JOBS_MAX + 1))
    if len(listed) > _KEYED_JOBS_MAX:
        raise UsageError(f"--spread: at most {_KEYED_JOBS_MAX:,} jobs")
    return listed


def _push_plain(cli: Cli, wish: _Wish, batch: list[bytes]) -> None:
    lot = cli.client.push_payloads(
        wish.queue,
        batch,
        options=_typed(wish.options, batch),
        delay=wish.delay,
        run_at=wish.run_at,
        spread=wish.spread,
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
            spread=wish.spread,
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
