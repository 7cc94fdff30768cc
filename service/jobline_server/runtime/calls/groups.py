"""Operators' calls on groups."""

from __future__ import annotations

from collections.abc import Iterator

from jobline_server.engine.decide.group_limits import decide_limit_group
from jobline_server.engine.decide.groups import (
    decide_pause_group,
    decide_resume_group,
    decide_update_group,
)
from jobline_server.engine.decide.queues import existing_queue
from jobline_server.engine.group import Group, rate_of
from jobline_server.engine.group_counts import active_of, ready_of
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.operations import GroupChange, Pause, PauseChange, TimeLimitChange
from jobline_server.engine.queue import Queue
from jobline_server.runtime.calls.changes import (
    find_group,
    group_settings_of,
    limit_of,
    pause_of,
)
from jobline_server.runtime.calls.operations import Operations, Target
from jobline_server.runtime.core import Core
from jobline_server.runtime.queries.paging import first_names, page_by_name
from jobline_server.runtime.slots import ShardSlot
from jobline_server.runtime.views import NO_AUDIT, Audit, GroupView

# About how many bytes a group takes in a message, without its texts.
GROUP_BYTES = 128


class Groups:
    """Reads and changes groups."""

    def __init__(self, core: Core, operations: Operations) -> None:
        self._core = core
        self._operations = operations

    async def list_groups(
        self, queue: str, *, page_size: int, page_token: str, prefix: str
    ) -> tuple[list[GroupView], str]:
        """Returns a page of the groups of a queue by name; the token is the last name of the page
        before. Raises `Refused` with QUEUE_NOT_FOUND.
        """
        found = existing_queue(self._core.slots.of_queue(queue).shard, queue)
        first = await first_names(_names(found, page_token, prefix), page_size + 1)

        def show(name: str) -> GroupView | None:
            group = found.groups.find(name)
            return None if group is None else self._view(found, group)

        return await page_by_name(first, page_size, show, _bytes_of)

    async def update_group(
        self,
        queue: str,
        group: str,
        settings: GroupSettings,
        mask: frozenset[str] | None,
        audit: Audit = NO_AUDIT,
    ) -> GroupView:
        """Changes settings; creates the group and its queue if they do not exist."""
        slot = self._core.slots.of_queue(queue)
        before = group_settings_of(find_group(slot.shard, queue, group))
        decide_update_group(slot.shard, self._core.now(), queue, group, settings, mask)
        change = GroupChange(before, group_settings_of(find_group(slot.shard, queue, group)))
        self._operations.record(slot, audit, Target(queue, group), change)
        return await self._changed(slot, queue, group)

    async def pause_group(self, queue: str, group: str, audit: Audit) -> GroupView:
        """Stops hand-outs of a group."""
        slot = self._core.slots.of_queue(queue)
        now, before = self._core.now(), pause_of(find_group(slot.shard, queue, group))
        decide_pause_group(slot.shard, now, queue, group, audit.principal, audit.reason)
        return await self._pause_changed(slot, Target(queue, group), before, audit)

    async def resume_group(self, queue: str, group: str, audit: Audit = NO_AUDIT) -> GroupView:
        """Resumes hand-outs of a group."""
        slot = self._core.slots.of_queue(queue)
        before = pause_of(find_group(slot.shard, queue, group))
        decide_resume_group(slot.shard, self._core.now(), queue, group)
        return await self._pause_changed(slot, Target(queue, group), before, audit)

    async def _pause_changed(
        self, slot: ShardSlot, target: Target, before: Pause, audit: Audit
    ) -> GroupView:
        after = pause_of(find_group(slot.shard, target.queue, target.group))
        self._operations.record(slot, audit, target, PauseChange(before, after))
        return await self._changed(slot, target.queue, target.group)

    async def limit_group(self, queue: str, group: str, until_ms: int, audit: Audit) -> GroupView:
        """Stops hand-outs of a group until a time; one that has passed lifts that limit."""
        slot = self._core.slots.of_queue(queue)
        now, before = self._core.now(), limit_of(find_group(slot.shard, queue, group))
        decide_limit_group(slot.shard, now, queue, group, until_ms, audit.principal, audit.reason)
        change = TimeLimitChange(before, limit_of(find_group(slot.shard, queue, group)))
        self._operations.record(slot, audit, Target(queue, group), change)
        return await self._changed(slot, queue, group)

    async def _changed(self, slot: ShardSlot, queue: str, name: str) -> GroupView:
        """Returns the group once the change is on disk; an empty one if it exists no longer."""
        self._core.after_decision(slot)
        await self._core.commits.wait(slot)
        found = slot.shard.queues.get(queue)
        group = None if found is None else found.groups.find(name)
        if found is None or group is None:
            return view_of(found, Group(queue, name))
        return self._view(found, group)

    def _view(self, queue: Queue, group: Group) -> GroupView:
        """Returns the view of a group, with the tokens in store."""
        view, now = view_of(queue, group), self._core.now()
        rate = rate_of(group.settings, queue.settings.group)
        if rate is not None:
            rates = self._core.slots.of_queue(queue.name).shard.group_rates
            view.tokens = rates.shown(queue, group, rate, now.mono_ms).tokens(now.mono_ms)
        if group.limited is not None and not group.is_used_up:
            view.limited = group.limited
        return view


def _names(queue: Queue, after: str, prefix: str) -> Iterator[list[str]]:
    """Yields names of groups after one, in slices."""
    for part in queue.groups.names():
        yield [name for name in part if name > after and name.startswith(prefix)]


def view_of(queue: Queue | None, group: Group) -> GroupView:
    """Returns the view of a group of a queue."""
    active, ready = (0, 0) if queue is None else (active_of(queue, group), ready_of(queue, group))
    fair = None if queue is None else queue.fair
    tenant = None if fair is None else fair.tenants.find(group.name)
    return GroupView(
        queue=group.queue,
        name=group.name,
        settings=group.settings,
        ready=ready,
        active=active,
        scheduled=group.live - active - ready,
        paused=group.paused,
        paused_by=group.paused_by,
        pause_reason=group.pause_reason,
        dead_heads=group.dead_heads,
        weight=0 if fair is None else fair.weight_of(group.name),
        worker_time_ms=0 if tenant is None else tenant.used_ms,
    )


def _bytes_of(view: GroupView) -> int:
    texts = (view.name, view.queue, view.paused_by, view.pause_reason)
    return GROUP_BYTES + sum(len(text.encode()) for text in texts) + 9 * len(view.dead_heads)
