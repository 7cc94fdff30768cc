"""READY jobs of groups that are changed."""

from __future__ import annotations

import pytest

from jobline_server.engine.commands import Refused
from jobline_server.engine.decide.groups import decide_pause_group, decide_resume_group
from jobline_server.engine.decide.update import JobChange, decide_update
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.lane import SMALL_BYTES
from tests.unit.engine.test_apply_groups import push, recovers, run


def test_waiting_job_is_changed_where_it_stands(world):
    """Its payload; a job of a group has no priority."""
    first, second, third = push(world, "g", "g", "g")
    for job_id in (first, second):
        decide_update(world.shard, world.now, job_id, JobChange(payload=b"new"))
    with pytest.raises(Refused, match="not together with group"):
        decide_update(world.shard, world.now, second, JobChange(priority=1))
    world.commit()
    recovers(world)
    assert run(world) == [first, second, third]


def test_job_that_is_postponed_gives_up_its_place(world):
    """The next one, as one that waits, and gets a new place when it is due."""
    first, second, third = push(world, "g", "g", "g")
    decide_update(world.shard, world.now, second, JobChange(delay_ms=1_000))
    decide_update(world.shard, world.now, first, JobChange(delay_ms=2_000))
    world.commit()
    recovers(world)
    assert run(world) == [third]
    world.tick(1_000)
    world.tick(1_000)
    assert run(world) == [second, first]
    recovers(world)


def test_next_job_that_becomes_large_changes_its_lane_and_keeps_its_place(world):
    first, second = push(world, "g", "g")
    decide_update(world.shard, world.now, first, JobChange(payload=bytes(SMALL_BYTES + 1)))
    world.commit()
    recovers(world)
    assert run(world) == [first, second]


def test_one_of_several_next_jobs_that_becomes_large_stays_before_the_others(world):
    """Also where they have to wait for their group, which was paused meanwhile."""
    world.settings(group=GroupSettings(concurrency=2))
    first, second, third = push(world, "g", "g", "g")
    decide_update(world.shard, world.now, first, JobChange(payload=bytes(SMALL_BYTES + 1)))
    decide_pause_group(world.shard, world.now, "q", "g", "ann", "why")
    decide_resume_group(world.shard, world.now, "q", "g")
    world.commit()
    recovers(world)
    assert run(world) == [first, second, third]
