"""Each invariant of groups notices when it is broken."""

from __future__ import annotations

import pytest

from jobline_server.engine.decide.groups import decide_pause_group
from jobline_server.engine.group import Group
from jobline_server.engine.group_invariants import groups_add_up, groups_run_in_order
from jobline_server.engine.group_settings import GroupSettings
from tests.unit.engine.test_apply_groups import push


@pytest.fixture
def group(world):
    """Three jobs, of which one is leased and two wait, in a world that keeps all promises."""
    push(world, "g", "g", "g")
    world.lease(1)
    world.check()
    return world.queue().groups.find("g")


def test_group_that_miscounts_its_jobs_is_noticed(world, group):
    group.live += 1
    assert groups_add_up(world.shard) == "group g counts 4 live jobs, 2 wait"


def test_group_without_reason_to_be_is_noticed(world, group):
    world.queue().groups.add(Group("q", "idle"))
    assert groups_add_up(world.shard) == "group idle has no job and no record"


def test_group_with_a_wrong_record_is_noticed(world, group):
    group.number = 7
    assert groups_add_up(world.shard) == "group g has the record 7"


def test_wrong_number_of_held_jobs_is_noticed(world, group):
    world.queue().groups.held += 1
    assert groups_add_up(world.shard) == "queue q counts 3 held jobs of 2"


def test_wrong_number_of_groups_is_noticed(world, group):
    world.shard.load.groups = 5
    assert groups_add_up(world.shard).startswith("1 groups with 0 records, load says 5")


def test_leased_job_that_was_not_admitted_is_noticed(world, group):
    group.dismiss_all()
    assert "is ACTIVE, admitted=False" in groups_add_up(world.shard)


def test_job_that_its_group_has_lost_is_noticed(world, group):
    """One that is READY, neither admitted nor waiting."""
    group.take_first()
    group.live -= 1
    world.queue().groups.held -= 1
    lost = max(world.shard.jobs)
    world.shard.jobs[lost].ties = world.shard.jobs[lost].ties
    group.live += 1
    assert groups_add_up(world.shard).endswith("its group has lost it")


def test_waiting_job_that_is_not_live_is_noticed(world, group):
    gone = max(world.shard.jobs)
    del world.shard.jobs[gone]
    group.live -= 1
    assert groups_add_up(world.shard) == f"jobs [{gone}] wait in groups and are not live"


def test_line_that_is_out_of_order_is_noticed(world, group):
    group.first().order += 100
    assert "wait in no order" in groups_run_in_order(world.shard)


def test_paused_group_with_a_job_in_a_lane_is_noticed(world):
    push(world, "g")
    group = world.queue().groups.find("g")
    group.paused = True
    assert groups_run_in_order(world.shard) == "group g is paused and has jobs in lanes"


def test_group_with_room_whose_jobs_wait_is_noticed(world, group):
    decide_pause_group(world.shard, world.now, "q", "g", "", "")
    group.dismiss_all()
    group.paused = False
    assert groups_run_in_order(world.shard) == "group g has room, and jobs wait"
    group.settings = GroupSettings(concurrency=2)
    assert groups_run_in_order(world.shard) == ""


def test_volatile_job_in_a_group_is_noticed(world, group):
    [job] = group.admitted
    job.volatile = True
    assert groups_run_in_order(world.shard) == "group g has a volatile job"
