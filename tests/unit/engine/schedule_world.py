"""Short words for what is done to schedules."""

from __future__ import annotations

from typing import Any

from jobline_server.engine.decide.schedules import decide_put_schedule
from jobline_server.engine.decide.ticks import decide_tick
from jobline_server.engine.schedule import NONE_DUE, DueRuns, Schedule, ScheduleSettings
from jobline_server.engine.schedule_entries import ScheduleTicked
from tests.unit.engine.world import World

EVERY_MS = 10_000


def put(world: World, name: str = "s", queue: str = "q", **settings: Any) -> Schedule:
    """Creates or changes a schedule that runs every ten seconds."""
    now_ms = world.now.wall_ms
    settings.setdefault("every_ms", EVERY_MS)
    decide_put_schedule(
        world.shard,
        world.now,
        name,
        ScheduleSettings(queue, **settings),
        anchor_ms=now_ms,
        next_ms=now_ms + EVERY_MS,
    )
    world.commit()
    return world.shard.schedules.by_name[name]


def run(world: World, ms: int = EVERY_MS, *, has_worker: bool = True) -> list[ScheduleTicked]:
    """Time goes on, and all that is due runs, as the timer loop does it."""
    world.advance(ms)
    ticked = []
    for schedule in world.shard.schedules.pop_due(world.now.wall_ms):
        times = due(schedule, world.now.wall_ms)
        runs = DueRuns(times, 0, times[-1] + EVERY_MS) if times else NONE_DUE
        fact = decide_tick(world.shard, world.now, schedule.name, runs, has_worker=has_worker)
        world.shard.schedules.arm(schedule)
        ticked += [fact] if fact is not None else []
    world.commit()
    world.check()
    return ticked


def due(schedule: Schedule, now_ms: int) -> tuple[int, ...]:
    """The last runs that have started, 101 at most."""
    times = range(schedule.next_ms, now_ms + 1, EVERY_MS) if schedule.next_ms else range(0)
    return tuple(one for one in times if schedule.starts_ms(one) <= now_ms)[-101:]
