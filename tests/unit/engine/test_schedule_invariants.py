"""The invariant of schedules notices when it is broken."""

from __future__ import annotations

import pytest

from jobline_server.engine.schedule import JobTemplate
from jobline_server.engine.schedule_invariants import schedules_add_up
from jobline_server.engine.values import JobState
from tests.unit.engine.schedule_world import put, run


@pytest.fixture
def schedule(world):
    """A schedule that has run, and is found right."""
    made = put(world, job=JobTemplate(payload=b"12"))
    run(world)
    assert schedules_add_up(world.shard) == ""
    return made


def test_schedule_without_its_queue_is_noticed(world, schedule):
    del world.shard.queues["q"]
    assert "in queues ['q']" in schedules_add_up(world.shard)


def test_payload_bytes_of_nobody_are_noticed(world, schedule):
    world.shard.schedules.payload_bytes += 1
    assert schedules_add_up(world.shard) == "schedules count 3 payload bytes of 2"


def test_last_jobs_that_are_mixed_up_are_noticed(world, schedule):
    job_id = schedule.last_job_id
    schedule.last_job_id += 1
    assert schedules_add_up(world.shard).startswith(f"job {job_id} is the last one")
    schedule.last_job_id = job_id
    del world.shard.schedules.by_job[job_id]
    assert schedules_add_up(world.shard).endswith(f"is not found by its last job {job_id}")


def test_end_that_was_not_noted_is_noticed(world, schedule):
    schedule.last_state, schedule.last_ended_ms = JobState.DEAD, 5
    assert "is wrong about its last job" in schedules_add_up(world.shard)


def test_schedule_that_nobody_looks_at_is_noticed(world, schedule):
    schedule.armed_ms = None
    assert "is looked at by None" in schedules_add_up(world.shard)
    schedule.armed_ms = schedule.next_ms + 1
    assert "after its next run" in schedules_add_up(world.shard)
