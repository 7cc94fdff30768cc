"""What operators see of a schedule."""

from __future__ import annotations

from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.schedule import JobTemplate
from jobline_server.engine.values import JobOptions, JobState
from jobline_server.runtime.schedule_views import FIXED_BYTES, schedule_bytes, view_of
from tests.unit.engine.schedule_world import put, run
from tests.unit.engine.world import World


def test_state_of_the_last_job_is_that_of_now() -> None:
    world = World()
    schedule = put(world)
    assert view_of(world.shard, schedule).last_state is None
    (fact,) = run(world)
    assert view_of(world.shard, schedule).last_state is JobState.READY
    world.lease()
    assert view_of(world.shard, schedule).last_state is JobState.ACTIVE
    decide_cancel(world.shard, world.now, fact.job_ids)
    world.ack([(fact.job_ids[0], world.shard.jobs[fact.job_ids[0]].delivery)])
    view = view_of(world.shard, schedule)
    assert (view.last_state, view.last_ended_ms) == (JobState.CANCELLED, world.now.wall_ms)


def test_lists_leave_payloads_out_and_sizes_add_up() -> None:
    world = World()
    job = JobTemplate(JobOptions(headers=(("key", "value"),)), payload=b"x" * 1_000)
    schedule = put(world, job=job)
    whole, short = (view_of(world.shard, schedule, with_payload=one) for one in (True, False))
    assert (len(whole.settings.job.payload), short.settings.job.payload) == (1_000, b"")
    assert schedule_bytes(whole) - schedule_bytes(short) == 1_000
    assert schedule_bytes(short) > FIXED_BYTES
