"""What a checkpoint keeps of schedules comes back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jobline_server.engine.decide.schedules import (
    decide_delete_schedule,
    decide_pause_schedule,
    decide_put_schedule,
)
from jobline_server.engine.decide.ticks import decide_tick
from jobline_server.engine.schedule import DueRuns, Schedule, ScheduleSettings, SkipReason
from jobline_server.engine.values import JobState
from jobline_server.storage.kinds.schedules import decode_schedule, encode_schedule
from tests.shard_image import image_of
from tests.storage import value_strategies as own
from tests.storage.recovery_world import World

NUMBERS = ("anchor_ms", "next_ms", "waiting_ms", "count", "skipped", "missed", "last_ms")
OTHERS = ("last_fired_ms", "last_job_id", "last_ended_ms", "skip_ms", "created_ms", "changed_ms")


@given(st.data(), own.schedule_settings)
def test_schedule_comes_back(data: st.DataObject, settings: ScheduleSettings) -> None:
    schedule = Schedule(data.draw(own.text), data.draw(own.ids), settings)
    for name in (*NUMBERS, *OTHERS):
        setattr(schedule, name, data.draw(own.moments))
    for name in ("skip_message", "paused_by", "pause_reason"):
        setattr(schedule, name, data.draw(own.text))
    schedule.paused = data.draw(st.booleans())
    schedule.last_state = data.draw(st.none() | st.sampled_from(JobState))
    schedule.skip_reason = data.draw(st.none() | st.sampled_from(SkipReason))
    back = decode_schedule(encode_schedule(schedule))
    for name in Schedule.__slots__:
        assert getattr(back, name) == getattr(schedule, name)


def test_checkpoint_has_the_schedules_that_are_there() -> None:
    """One that was deleted goes with the next checkpoint; each run pushes once."""
    world = World()
    settings, start_ms = ScheduleSettings("q", every_ms=1_000), world.now.wall_ms
    for name in ("one", "two", "gone"):
        decide_put_schedule(
            world.shard, world.now, name, settings, anchor_ms=start_ms, next_ms=start_ms + 1_000
        )
    world.commit()
    world.finish_checkpoint(truncate=True)
    decide_delete_schedule(world.shard, world.now, "gone")
    decide_pause_schedule(world.shard, world.now, "two", "ann", "holidays")
    world.time_passes(1_000)
    runs = DueRuns((start_ms + 1_000,), 0, start_ms + 2_000)
    decide_tick(world.shard, world.now, "one", runs, has_worker=True)
    world.commit()
    for truncate in (False, True):
        before = image_of(world.shard)["schedules"]
        world.recover()
        assert image_of(world.shard)["schedules"] == before
        assert sorted(before) == ["one", "two"]
        assert world.shard.schedules.first_ms() == start_ms + 2_000
        assert len(world.shard.jobs) == before["one"]["count"] == 1
        world.finish_checkpoint(truncate=truncate)
