"""Limiters: creates, changes, empties and deletes them."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from jobline_server.engine import limits
from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.commands import Push, RefusalKind, Refused, ReleaseItem
from jobline_server.engine.decide.queues import LIMITED_BY_WORKER, longer_limit_ms
from jobline_server.engine.job import Job
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.limiter_entries import LimiterChanged, LimiterDeleted
from jobline_server.engine.limiters import Limiters, LimiterSettings
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.values import JobOptions, Now
from jobline_server.engine.view import ShardView


def existing_limiter(shard: ShardView, name: str, field: str = "limiter") -> LimiterSettings:
    """Returns the limiter with this name; raises `Refused` with LIMITER_NOT_FOUND."""
    found = shard.own_limiters.get(name)
    if found is None:
        raise _not_found(name, field)
    return found


def decide_put_limiter(
    shard: ShardView, now: Now, name: str, rate: RateLimit | None, concurrency: int | None
) -> None:
    """Creates a limiter, or changes its limits. Raises `Refused` with LIMITERS_FULL."""
    before = shard.own_limiters.get(name)
    if before is None:
        if len(shard.own_limiters) >= limits.SHARD_LIMITERS_MAX:
            message = (
                f"there is no limiter {name}, and its shard has {limits.SHARD_LIMITERS_MAX} "
                "others, the most there may be"
            )
            raise Refused(RefusalKind.LIMITERS_FULL, message, field="limiter")
        before = LimiterSettings(name, shard.next_id(), created_ms=now.wall_ms)
    elif (before.rate, before.concurrency) == (rate, concurrency):
        return
    _change(shard, now, replace(before, rate=rate, concurrency=concurrency))


def decide_empty_limiter(
    shard: ShardView, now: Now, name: str, until_ms: int, principal: str, reason: str
) -> None:
    """Has a limiter let nothing out until a wall time, instead of what was said before; a time that
    has passed lifts that limit. Raises `Refused` with LIMITER_NOT_FOUND.
    """
    before = existing_limiter(shard, name)
    limited = TimeLimit(until_ms, principal, reason) if until_ms > now.wall_ms else None
    if before.limited != limited:
        _change(shard, now, replace(before, limited=limited))


def decide_delete_limiter(shard: ShardView, now: Now, name: str) -> None:
    """Deletes a limiter: jobs that name it go free. Raises `Refused` with LIMITER_NOT_FOUND."""
    existing_limiter(shard, name)
    shard.clocks.advance(now)
    shard.emit(LimiterDeleted(now.wall_ms, name))


def decide_worker_limit(shard: ShardView, now: Now, name: str, until_ms: int, worker: str) -> None:
    """Has a limiter let nothing out until a wall time, as a worker says, but for no longer than
    workers may: queues of others share it. It takes no time back that was said before. Does nothing
    if the limiter does not exist.
    """
    before = shard.own_limiters.get(name)
    if before is None:
        return
    until_ms = longer_limit_ms(shard, now, before.limited, until_ms)
    if until_ms:
        limited = TimeLimit(until_ms, worker, LIMITED_BY_WORKER)
        _change(shard, now, replace(before, limited=limited))


def may_empty(shard: ShardView, item: ReleaseItem) -> bool:
    """Returns whether a worker may say until when the limiter of a release lets nothing out: the
    job passes it. A lease that is lost says nothing.
    """
    lease, _ = shard.find_lease(item.id)
    if lease is None or lease.delivery != item.delivery:
        return True
    options = lease.options if isinstance(lease, Job) else lease.lot.options
    return item.limiter in options.rules.limiters


def check_limiters(limiters: Limiters, command: Push, rows: JobColumns, payloads: Payloads) -> None:
    """Refuses a push whose new jobs, `rows` and `payloads`, name a limiter that does not exist,
    with LIMITER_NOT_FOUND.
    """
    shared = [command.options] if len(payloads) else []
    for options in chain(shared, rows.options if rows.has_rules else ()):
        if options.rules is NO_RULES:
            continue
        for name in options.rules.limiters:
            if limiters.find(name) is None:
                raise _not_found(name, _field_of(command, name))


def check_limiters_exist(limiters: Limiters, options: JobOptions, field: str) -> None:
    """Refuses options that name a limiter which does not exist, with LIMITER_NOT_FOUND."""
    for name in options.rules.limiters:
        if limiters.find(name) is None:
            raise _not_found(name, field)


def _field_of(command: Push, name: str) -> str:
    """Returns the field of a push that names a limiter."""
    shared = command.shared_options or command.options
    if name in shared.rules.limiters:
        return "options.limiters"
    named = [name in options.rules.limiters for options in command.rows.options]
    # Without rows, the options of all jobs are the same.
    return f"jobs[{named.index(True) if named else 0}].options.limiters"


def _change(shard: ShardView, now: Now, limiter: LimiterSettings) -> None:
    shard.clocks.advance(now)
    shard.emit(LimiterChanged(now.wall_ms, limiter))


def _not_found(name: str, field: str) -> Refused:
    message = f"there is no limiter {name}"
    return Refused(RefusalKind.LIMITER_NOT_FOUND, message, field=field)
