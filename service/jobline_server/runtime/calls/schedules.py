"""Operators' calls on schedules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import islice

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.schedules import (
    decide_delete_schedule,
    decide_pause_schedule,
    decide_put_schedule,
    decide_resume_schedule,
    existing_schedule,
    other_queue,
    schedule_not_found,
)
from jobline_server.engine.decide.ticks import decide_trigger
from jobline_server.engine.operations import PauseChange
from jobline_server.engine.schedule import Schedule, ScheduleSettings, SkipReason
from jobline_server.runtime.calls.changes import pause_of
from jobline_server.runtime.calls.operations import Operations, Target
from jobline_server.runtime.core import Core
from jobline_server.runtime.queries.paging import first_names, page_by_name
from jobline_server.runtime.schedule_times import coming_runs, first_run, next_run, resumed_run
from jobline_server.runtime.schedule_views import ScheduleView, schedule_bytes, view_of
from jobline_server.runtime.slots import ShardSlot
from jobline_server.runtime.views import NO_AUDIT, Audit

# Names that a step of a list looks at.
STEP_NAMES = 4_000
# Runs of a preview that are computed in one iteration of the loop, at some 50 µs each.
STEP_RUNS = 100


class ScheduleCalls:
    """Reads and changes schedules. A schedule is in the shard of its queue; there is one of a name
    in all shards of the process.
    """

    def __init__(self, core: Core, operations: Operations) -> None:
        self._core = core
        self._operations = operations

    def get_schedule(self, name: str) -> ScheduleView:
        """Returns one schedule. Raises `Refused` with SCHEDULE_NOT_FOUND."""
        slot, schedule = self._existing(name)
        return view_of(slot.shard, schedule)

    async def list_schedules(
        self, *, page_size: int, page_token: str, prefix: str, queue: str
    ) -> tuple[list[ScheduleView], str]:
        """Returns a page of schedules by name; the token is the last name of the page before."""
        names = self._names(page_token, prefix, queue)
        first = await first_names(names, page_size + 1)
        return await page_by_name(first, page_size, self._shown, schedule_bytes)

    def _names(self, after: str, prefix: str, queue: str) -> Iterator[list[str]]:
        """Yields names of schedules after one, in slices."""
        for slot in self._core.slots:
            schedules = slot.shard.schedules
            names = list(schedules.by_queue.get(queue, {}) if queue else schedules.by_name)
            for at in range(0, len(names), STEP_NAMES):
                part = names[at : at + STEP_NAMES]
                yield [name for name in part if name > after and name.startswith(prefix)]

    def _shown(self, name: str) -> ScheduleView | None:
        found = self._find(name)
        return None if found is None else view_of(found[0].shard, found[1], with_payload=False)

    async def create_schedule(
        self, name: str, settings: ScheduleSettings, *, upsert: bool, audit: Audit = NO_AUDIT
    ) -> ScheduleView:
        """Creates a schedule; with `upsert` changes one that exists. Raises `Refused` with
        SCHEDULE_EXISTS.
        """
        found = self._find(name)
        if found is not None and not upsert:
            message = f"there is a schedule {name}; set upsert to change it"
            raise Refused(RefusalKind.SCHEDULE_EXISTS, message, field="schedule")
        return await self._put(name, settings, found, audit)

    async def update_schedule(
        self,
        name: str,
        change: Callable[[ScheduleSettings], ScheduleSettings],
        audit: Audit = NO_AUDIT,
    ) -> ScheduleView:
        """Changes a schedule; `change` returns its new settings."""
        found = self._existing(name)
        return await self._put(name, change(found[1].settings), found, audit)

    async def _put(
        self,
        name: str,
        settings: ScheduleSettings,
        found: tuple[ShardSlot, Schedule] | None,
        audit: Audit,
    ) -> ScheduleView:
        before = None if found is None else found[1]
        if before is not None and before.settings.queue != settings.queue:
            raise other_queue(before)
        slot = self._core.slots.of_queue(settings.queue)
        self._core.check_accepting(slot, 2)
        now = self._core.now()
        if before is None:
            anchor_ms = settings.start_ms or now.wall_ms
            next_ms = first_run(settings, anchor_ms, now.wall_ms)
        elif before.settings.timing() == settings.timing():
            anchor_ms, next_ms = before.anchor_ms, before.next_ms
        else:
            # Multiples of the same time go on from where they were.
            keeps = before.settings.every_ms == settings.every_ms and not before.settings.start_ms
            anchor_ms = settings.start_ms or (before.anchor_ms if keeps else now.wall_ms)
            next_ms = 0
            if not settings.limit or settings.limit > before.count:
                next_ms = next_run(settings, anchor_ms, now.wall_ms)
        decide_put_schedule(slot.shard, now, name, settings, anchor_ms=anchor_ms, next_ms=next_ms)
        self._operations.record(slot, audit, Target(settings.queue, schedule=name))
        return await self._changed(slot, name)

    async def delete_schedule(self, name: str, audit: Audit = NO_AUDIT) -> None:
        """Deletes a schedule."""
        slot, schedule = self._existing(name)
        decide_delete_schedule(slot.shard, self._core.now(), name)
        self._operations.record(slot, audit, _target(schedule))
        self._core.after_decision(slot)
        await self._core.commits.wait(slot)

    async def pause_schedule(self, name: str, audit: Audit) -> ScheduleView:
        """Pauses a schedule."""
        slot, schedule = self._existing(name)
        now, before = self._core.now(), pause_of(schedule)
        decide_pause_schedule(slot.shard, now, name, audit.principal, audit.reason)
        change = PauseChange(before, pause_of(schedule))
        self._operations.record(slot, audit, _target(schedule), change)
        return await self._changed(slot, name)

    async def resume_schedule(self, name: str, audit: Audit = NO_AUDIT) -> ScheduleView:
        """Resumes a schedule, with its next run from now."""
        slot, schedule = self._existing(name)
        now, before = self._core.now(), pause_of(schedule)
        decide_resume_schedule(slot.shard, now, name, resumed_run(schedule, now.wall_ms))
        change = PauseChange(before, pause_of(schedule))
        self._operations.record(slot, audit, _target(schedule), change)
        return await self._changed(slot, name)

    async def trigger_schedule(
        self, name: str, audit: Audit = NO_AUDIT
    ) -> tuple[int, SkipReason | None, ScheduleView]:
        """Runs a schedule now. Returns the job, 0 without; why there is none; and the schedule."""
        slot, schedule = self._existing(name)
        self._core.check_accepting(slot, 2)
        settings = schedule.settings
        fact = decide_trigger(
            slot.shard,
            self._core.now(),
            name,
            has_worker=self._core.rings.handles(settings.queue, settings.job.options.name),
        )
        self._operations.record(slot, audit, _target(schedule))
        job_id, reason = 0, None
        if fact is not None:
            job_id = fact.job_ids[0] if fact.job_ids else 0
            # One that was replaced is another run, which waited.
            reason = next(
                (one for one in fact.skip_reasons if one is not SkipReason.REPLACED), None
            )
        return job_id, reason, await self._changed(slot, name)

    async def preview_stored(self, name: str, after_ms: int, count: int) -> list[int]:
        """Returns the next runs of a schedule, paused or not, after a moment."""
        _, schedule = self._existing(name)
        settings, anchor_ms = schedule.settings, schedule.anchor_ms
        after_ms = max(after_ms, self._core.wall_ms())
        run_ms = schedule.next_ms
        if run_ms and run_ms <= after_ms:
            run_ms = next_run(settings, anchor_ms, after_ms)
        left = schedule.runs_left()
        count = count if left is None else min(count, left)
        return await _listed(islice(coming_runs(settings, anchor_ms, run_ms), count))

    async def preview(self, settings: ScheduleSettings, after_ms: int, count: int) -> list[int]:
        """Returns the runs of a schedule that were created now, after a moment; 0 is now."""
        now_ms = self._core.wall_ms()
        anchor_ms = settings.start_ms or now_ms
        run_ms = first_run(settings, anchor_ms, now_ms)
        if after_ms:
            run_ms = next_run(settings, anchor_ms, after_ms)
        count = min(count, settings.limit or count)
        return await _listed(islice(coming_runs(settings, anchor_ms, run_ms), count))

    async def _changed(self, slot: ShardSlot, name: str) -> ScheduleView:
        self._core.after_decision(slot)
        await self._core.commits.wait(slot)
        return view_of(slot.shard, existing_schedule(slot.shard, name))

    def _existing(self, name: str) -> tuple[ShardSlot, Schedule]:
        found = self._find(name)
        if found is None:
            raise schedule_not_found(name)
        return found

    def _find(self, name: str) -> tuple[ShardSlot, Schedule] | None:
        for slot in self._core.slots:
            schedule = slot.shard.schedules.find(name)
            if schedule is not None:
                return slot, schedule
        return None


def _target(schedule: Schedule) -> Target:
    return Target(schedule.settings.queue, schedule=schedule.name)


async def _listed(runs: Iterator[int]) -> list[int]:
    """Returns runs, which are computed in slices."""
    listed: list[int] = []
    while part := list(islice(runs, STEP_RUNS)):
        listed += part
        await asyncio.sleep(0)
    return listed
