"""Schedules run when they are due, a slice at a time; days of them over changes of the clock, with
crashes in between.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from jobline_server.engine.decide.schedules import decide_put_schedule
from jobline_server.engine.decide.ticks import decide_tick
from jobline_server.engine.schedule import NONE_DUE, Overlap, ScheduleSettings
from jobline_server.engine.schedules import AGAIN_MS
from jobline_server.engine.values import Now
from jobline_server.runtime import schedule_timer
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.schedule_times import due_runs, first_run
from tests.shard_image import image_of
from tests.slow_cron import DAYS, EXPRESSIONS, slow_times
from tests.storage.recovery_world import World


def put(runtime: Runtime, name: str, *, every_ms: int = 10_000) -> None:
    """Creates a schedule without a commit."""
    now = runtime.core.now()
    settings = ScheduleSettings("mail", every_ms=every_ms, overlap=Overlap.ALLOW)
    next_ms = now.wall_ms + every_ms
    decide_put_schedule(
        runtime.core.slots[0].shard, now, name, settings, anchor_ms=now.wall_ms, next_ms=next_ms
    )


def advance(runtime: Runtime, ms: int) -> None:
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    clock.advance(ms)


def count_of(runtime: Runtime, name: str) -> int:
    return runtime.core.slots[0].shard.schedules.by_name[name].count


async def test_timer_loop_wakes_for_a_schedule(runtime: Runtime) -> None:
    """At its time, not at the next look."""
    runtime.core.next_tick = Now(1 << 60, 1 << 60)
    put(runtime, "s", every_ms=100)
    runtime.core.after_decision(runtime.core.slots[0])
    assert runtime.core.timers.is_set()
    assert runtime.timer_loop._until_next() == 100
    advance(runtime, 100)
    assert not runtime.timer_loop.run_due()
    assert count_of(runtime, "s") == 1


async def test_many_due_schedules_go_in_slices(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule_timer, "SLICE_SECONDS", 0.0)
    for number in range(5):
        put(runtime, f"s{number}")
    advance(runtime, 10_000)
    looks = 1
    while runtime.timer_loop.run_due():
        looks += 1
    assert looks == 5
    assert [count_of(runtime, f"s{number}") for number in range(5)] == [1] * 5


async def test_schedules_wait_while_too_much_waits_for_the_disk(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule_timer, "WAITING_FACTS_MAX", 0)
    put(runtime, "s")
    advance(runtime, 10_000)
    assert not runtime.timer_loop.run_due()
    assert count_of(runtime, "s") == 0
    await runtime.core.commits.commit_once()
    runtime.timer_loop.run_due()
    assert count_of(runtime, "s") == 1


async def test_nothing_runs_while_the_disk_is_full(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came due is late then."""
    put(runtime, "s")
    advance(runtime, 10_000)
    monkeypatch.setattr(runtime.core.commits, "disk_full", True)
    assert not runtime.timer_loop.run_due()
    assert count_of(runtime, "s") == 0
    monkeypatch.setattr(runtime.core.commits, "disk_full", False)
    runtime.timer_loop.run_due()
    assert count_of(runtime, "s") == 1


async def test_schedule_that_fails_holds_up_no_other(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again in a minute."""
    put(runtime, "bad")
    put(runtime, "good")

    def fails(shard: Any, now: Any, name: str, runs: Any, *, has_worker: bool) -> Any:
        if name == "bad":
            raise ZeroDivisionError
        return decide_tick(shard, now, name, runs, has_worker=has_worker)

    monkeypatch.setattr(schedule_timer, "decide_tick", fails)
    advance(runtime, 10_000)
    while runtime.timer_loop.run_due():
        pass
    assert (count_of(runtime, "bad"), count_of(runtime, "good")) == (0, 1)
    assert runtime.core.loops.record("schedules").failures == 1
    monkeypatch.setattr(schedule_timer, "decide_tick", decide_tick)
    advance(runtime, AGAIN_MS)
    while runtime.timer_loop.run_due():
        pass
    assert count_of(runtime, "bad") == 1


class Days:
    """Schedules on a virtual clock, over a store that crashes."""

    def __init__(self, start: datetime, seed: int) -> None:
        self.world = World()
        self.chance = Random(seed)
        self.crashes = 0
        self.world.now = Now(round(start.timestamp() * 1_000), 0)

    def create(self, name: str, settings: ScheduleSettings) -> None:
        now = self.world.now
        next_ms = first_run(settings, now.wall_ms, now.wall_ms)
        shard = self.world.shard
        decide_put_schedule(shard, now, name, settings, anchor_ms=now.wall_ms, next_ms=next_ms)
        self.world.commit()

    def live_until(self, end: datetime) -> None:
        """Every few seconds what is due runs; then a commit, or a crash before or after one."""
        end_ms = round(end.timestamp() * 1_000)
        while self.world.now.wall_ms < end_ms:
            now_ms = self.world.now.wall_ms + self.chance.randrange(1, 5_000)
            if not self.world.shard.entries:
                # All is written: the next thing that happens is a run.
                now_ms = max(now_ms, self.world.shard.schedules.first_ms() or end_ms)
            now_ms = min(now_ms, end_ms)
            self.world.now = Now(now_ms, 0)
            self._run_due()
            what = self.chance.random()
            if what < 0.05:
                self._crash()
            elif what < 0.9:
                self.world.commit()
                if what < 0.1:
                    self._crash()
            elif what < 0.93:
                self.world.finish_checkpoint(truncate=what < 0.91)
        self.world.commit()

    def _crash(self) -> None:
        self.crashes += 1
        before = self.world.image
        self.world.crash(ops_kept=0)
        assert image_of(self.world.shard)["schedules"] == before["schedules"]

    def _run_due(self) -> None:
        shard, now = self.world.shard, self.world.now
        for schedule in shard.schedules.pop_due(now.wall_ms):
            is_due = schedule.next_ms and schedule.starts_ms(schedule.next_ms) <= now.wall_ms
            runs = due_runs(schedule, now.wall_ms) if is_due else NONE_DUE
            decide_tick(shard, now, schedule.name, runs, has_worker=True)
            shard.schedules.arm(schedule)

    def runs(self) -> dict[str, list[int]]:
        """The times for which each schedule has pushed a job, from the jobs themselves."""
        found: dict[str, list[int]] = {}
        for job in self.world.shard.jobs.values():
            headers = dict(job.options.headers)
            at = datetime.fromisoformat(headers["jobline-scheduled-at"])
            found.setdefault(headers["jobline-schedule"], []).append(round(at.timestamp() * 1_000))
        return {name: sorted(times) for name, times in found.items()}


@pytest.mark.parametrize(("zone", "day"), DAYS)
def test_g24_day_on_which_clocks_change_with_crashes(zone: str, day: datetime) -> None:
    """Each schedule runs exactly when a slow computation says, once each."""
    days = Days(day - timedelta(minutes=1), seed=crc_of(zone, day))
    for expression in EXPRESSIONS:
        settings = ScheduleSettings(
            "q", cron=expression, time_zone=zone, overlap=Overlap.ALLOW, jitter_ms=500
        )
        days.create(f"cron {expression}", settings)
    days.create("hourly", ScheduleSettings("q", every_ms=3_600_000, overlap=Overlap.ALLOW))
    end = day + timedelta(days=1, minutes=10)
    days.live_until(end)
    found = days.runs()
    for expression in EXPRESSIONS:
        expected = slow_times(expression, ZoneInfo(zone), day - timedelta(minutes=1), end)
        assert found.get(f"cron {expression}", []) == expected
    assert {b - a for a, b in pairwise(found["hourly"])} == {3_600_000}
    assert len(found["hourly"]) == 24
    counts = Counter({name: len(times) for name, times in found.items()})
    schedules = days.world.shard.schedules.by_name
    assert {name: one.count for name, one in schedules.items() if one.count} == counts
    assert days.crashes > 5


def crc_of(zone: str, day: datetime) -> int:
    """A seed that is the same in each run."""
    return sum(map(ord, zone)) * 1_000 + day.timetuple().tm_yday
