"""Runs schedules whose time has come, a slice at a time: the timer loop calls `run_due`.

What is due is computed here (`schedule_times`), what becomes of it is decided in the engine. While
the disk is full nothing is decided: what comes due is late then, and perhaps missed.
"""

from __future__ import annotations

from time import perf_counter

from jobline_server.engine.commands import Refused
from jobline_server.engine.decide.ticks import decide_tick
from jobline_server.engine.limits import MISSED_RUNS_MAX
from jobline_server.engine.schedule import NONE_DUE, Schedule
from jobline_server.engine.schedules import AGAIN_MS
from jobline_server.engine.values import Now
from jobline_server.runtime.core import Core
from jobline_server.runtime.schedule_times import due_runs
from jobline_server.runtime.slots import ShardSlot

# How long schedules are decided in one iteration of the loop.
SLICE_SECONDS = 0.005
# Facts that may wait for the next commit before schedules add more.
WAITING_FACTS_MAX = 2_000


class ScheduleTimer:
    """Decides the schedules of all shards that are due."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._record = core.loops.record("schedules")

    def wait_ms(self, slot: ShardSlot, now: Now) -> int | None:
        """Returns in how many milliseconds a schedule of a shard is due; None if none is, or
        if it could not be run: the timer loop looks again anyway.
        """
        first_ms = slot.shard.schedules.first_ms()
        if first_ms is None or not self._is_accepting(slot):
            return None
        return max(first_ms - now.wall_ms, 0)

    def run_due(self, slot: ShardSlot, now: Now) -> bool:
        """Runs a slice of the schedules of a shard that are due; returns whether more are."""
        shard = slot.shard
        first_ms = shard.schedules.first_ms()
        if first_ms is None or first_ms > now.wall_ms or not self._is_accepting(slot):
            return False
        until = perf_counter() + SLICE_SECONDS
        for schedule in shard.schedules.pop_due(now.wall_ms):
            try:
                self._run(slot, now, schedule)
            except Exception as error:  # noqa: BLE001  # the others run all the same
                self._record.failed(error)
                shard.schedules.arm(schedule, now.wall_ms + AGAIN_MS)
            if perf_counter() > until:
                break
        first_ms = shard.schedules.first_ms()
        return first_ms is not None and first_ms <= now.wall_ms and self._is_accepting(slot)

    def _run(self, slot: ShardSlot, now: Now, schedule: Schedule) -> None:
        settings, shard = schedule.settings, slot.shard
        is_due = schedule.next_ms and schedule.starts_ms(schedule.next_ms) <= now.wall_ms
        decide_tick(
            shard,
            now,
            schedule.name,
            due_runs(schedule, now.wall_ms) if is_due else NONE_DUE,
            has_worker=self._core.rings.handles(settings.queue, settings.job.options.name),
        )
        # A tick that changed nothing left no fact, which would have done so.
        shard.schedules.arm(schedule)
        self._record.worked()

    def _is_accepting(self, slot: ShardSlot) -> bool:
        """Returns whether what is decided could be kept now."""
        if slot.shard.recorded() > WAITING_FACTS_MAX:
            return False
        try:
            self._core.check_accepting(slot, MISSED_RUNS_MAX + 2)
        except Refused:
            return False
        return True
