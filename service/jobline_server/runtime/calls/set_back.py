"""Sets back pauses, limits and settings that are still as the operation to undo has left them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.group_limits import decide_limit_group
from jobline_server.engine.decide.groups import (
    decide_pause_group,
    decide_resume_group,
    decide_update_group,
)
from jobline_server.engine.decide.limiters import (
    decide_delete_limiter,
    decide_empty_limiter,
    decide_put_limiter,
    existing_limiter,
)
from jobline_server.engine.decide.queues import (
    decide_limit_queue,
    decide_pause_queue,
    decide_resume_queue,
    decide_update_queue,
    existing_queue,
)
from jobline_server.engine.decide.schedules import (
    decide_pause_schedule,
    decide_resume_schedule,
    existing_schedule,
)
from jobline_server.engine.group import Group
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.limiters import LimiterSettings
from jobline_server.engine.operations import (
    CancelledJobs,
    GroupChange,
    LimitsChange,
    Operation,
    PauseChange,
    QueueChange,
    TimeLimitChange,
)
from jobline_server.engine.queue import Queue
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import QueueSettings
from jobline_server.runtime.calls.changes import (
    find_group,
    group_settings_of,
    limit_of,
    pause_of,
    settings_of,
)
from jobline_server.runtime.calls.operations import Operations, Target
from jobline_server.runtime.core import Core
from jobline_server.runtime.ended.ended_jobs import EndedJobs
from jobline_server.runtime.schedule_times import resumed_run
from jobline_server.runtime.views import Audit

SettingChange = PauseChange | TimeLimitChange | QueueChange | GroupChange | LimitsChange


class SetBack:
    """Sets back what operations changed."""

    def __init__(self, core: Core, ended: EndedJobs, operations: Operations) -> None:
        self._core = core
        self._ended = ended
        self._operations = operations

    async def set_back(self, operation: Operation, *, dry_run: bool, audit: Audit) -> str:
        """Sets back what an operation changed; returns the id of the operation that did it, "" for
        a dry run. Raises `Refused` with CHANGED_SINCE.
        """
        target = Target(operation.queue, operation.group, operation.limiter, operation.schedule)
        slot, done = self._core.slots.of_queue(target.queue or target.limiter), operation.change
        if done is None or isinstance(done, CancelledJobs):
            raise TypeError(operation.verb)
        before = self._current(slot.shard, target, done)
        apply = self._prepare(slot.shard, target, done)
        if dry_run:
            return ""
        apply()
        kind: Any = type(done)
        change = kind(before, self._current(slot.shard, target, done))
        undo = self._operations.record(slot, audit, target, change, undoes=operation.id)
        if isinstance(done, QueueChange):
            self._ended.hints.note_queue(target.queue)
        self._core.after_decision(slot)
        await self._core.commits.wait(slot)
        return undo

    def _current(self, shard: Shard, target: Target, done: SettingChange) -> object:
        """Returns how the thing is now that an operation has changed."""
        if isinstance(done, LimitsChange):
            return shard.own_limiters.get(target.limiter)
        if isinstance(done, QueueChange):
            return settings_of(shard.queues.get(target.queue))
        if isinstance(done, GroupChange):
            return group_settings_of(find_group(shard, target.queue, target.group))
        if isinstance(done, TimeLimitChange) and target.limiter:
            return self._ahead(existing_limiter(shard, target.limiter, "operation_id").limited)
        if isinstance(done, PauseChange) and target.schedule:
            return pause_of(existing_schedule(shard, target.schedule, "operation_id"))
        found: Queue | Group | None = existing_queue(shard, target.queue)
        if target.group:
            found = find_group(shard, target.queue, target.group)
        return pause_of(found) if isinstance(done, PauseChange) else self._ahead(limit_of(found))

    def _prepare(self, shard: Shard, target: Target, done: SettingChange) -> Callable[[], None]:
        """Checks that nothing changed since; returns what sets it back."""
        if isinstance(done, PauseChange):
            return self._pause(shard, target, done)
        if isinstance(done, TimeLimitChange):
            return self._limit(shard, target, done)
        if isinstance(done, QueueChange):
            return self._queue(shard, target, done)
        if isinstance(done, GroupChange):
            return self._group(shard, target, done)
        return self._limits(shard, target, done)

    def _pause(self, shard: Shard, target: Target, change: PauseChange) -> Callable[[], None]:
        queue, group, name = target.queue, target.group, target.schedule
        _check(self._current(shard, target, change) == change.after, target)
        now, before = self._core.now(), change.before

        def apply() -> None:
            if name and before.paused:
                decide_pause_schedule(shard, now, name, before.by, before.reason)
            elif name:
                next_ms = resumed_run(existing_schedule(shard, name), now.wall_ms)
                decide_resume_schedule(shard, now, name, next_ms)
            elif group and before.paused:
                decide_pause_group(shard, now, queue, group, before.by, before.reason)
            elif group:
                decide_resume_group(shard, now, queue, group)
            elif before.paused:
                decide_pause_queue(shard, now, queue, before.by, before.reason)
            else:
                decide_resume_queue(shard, now, queue)

        return apply

    def _limit(self, shard: Shard, target: Target, change: TimeLimitChange) -> Callable[[], None]:
        queue, group, limiter = target.queue, target.group, target.limiter
        _check(self._current(shard, target, change) == self._ahead(change.after), target)
        now, before = self._core.now(), self._ahead(change.before) or TimeLimit(0)

        def apply() -> None:
            until_ms, by, why = before.until_ms, before.by, before.reason
            if limiter:
                decide_empty_limiter(shard, now, limiter, until_ms, by, why)
            elif group:
                decide_limit_group(shard, now, queue, group, until_ms, by, why)
            else:
                decide_limit_queue(shard, now, queue, until_ms, by, why)

        return apply

    def _ahead(self, limit: TimeLimit | None) -> TimeLimit | None:
        """Returns a limit if its time is yet to come."""
        is_ahead = limit is not None and limit.until_ms > self._core.wall_ms()
        return limit if is_ahead else None

    def _queue(self, shard: Shard, target: Target, change: QueueChange) -> Callable[[], None]:
        now, changed = self._core.now(), _changed(change.before, change.after)
        _check(_agree(settings_of(shard.queues.get(target.queue)), change.after, changed), target)
        return lambda: decide_update_queue(shard, now, target.queue, change.before, changed)

    def _group(self, shard: Shard, target: Target, change: GroupChange) -> Callable[[], None]:
        queue, group = target.queue, target.group
        now, changed = self._core.now(), _changed(change.before, change.after)
        current = group_settings_of(find_group(shard, queue, group))
        _check(_agree(current, change.after, changed), target)
        return lambda: decide_update_group(shard, now, queue, group, change.before, changed)

    def _limits(self, shard: Shard, target: Target, change: LimitsChange) -> Callable[[], None]:
        name, before = target.limiter, change.before
        _check(_limits_of(shard.own_limiters.get(name)) == _limits_of(change.after), target)
        now = self._core.now()

        def apply() -> None:
            if before is None:
                decide_delete_limiter(shard, now, name)
                return
            decide_put_limiter(shard, now, name, before.rate, before.concurrency)
            limited = self._ahead(before.limited)
            if change.after is None and limited is not None:
                decide_empty_limiter(shard, now, name, limited.until_ms, limited.by, limited.reason)

        return apply


def _limits_of(limiter: LimiterSettings | None) -> tuple[object, ...]:
    return () if limiter is None else (limiter.rate, limiter.concurrency)


def _changed(
    before: QueueSettings | GroupSettings, after: QueueSettings | GroupSettings
) -> frozenset[str]:
    """Returns the names of the settings in which both differ."""
    names = [field.name for field in fields(before)]
    return frozenset(name for name in names if getattr(before, name) != getattr(after, name))


def _agree(
    one: QueueSettings | GroupSettings, other: QueueSettings | GroupSettings, names: frozenset[str]
) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _check(is_same: bool, target: Target) -> None:  # the only thing it is about
    if is_same:
        return
    what = f"limiter {target.limiter}" if target.limiter else f"queue {target.queue}"
    what = f"group {target.group} of {what}" if target.group else what
    what = f"schedule {target.schedule}" if target.schedule else what
    raise Refused(
        RefusalKind.CHANGED_SINCE,
        f"what the operation changed of {what} was changed again since",
        field="operation_id",
    )
