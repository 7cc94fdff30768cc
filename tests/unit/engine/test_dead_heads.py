"""Dead heads: a job that ran and is dead holds its group, where that is wanted."""

from __future__ import annotations

import pytest

from jobline_server.engine.apply.groups import note_record
from jobline_server.engine.decide.admin import decide_delete_ended, decide_retry
from jobline_server.engine.group_settings import NO_GROUP_SETTINGS, GroupSettings, OnDeadHead
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import JobOptions, JobState, Retention
from tests.unit.engine.test_apply_groups import ONE_TRY, push, recovers, run, settings

S = JobState
HOLD = GroupSettings(on_dead_head=OnDeadHead.HOLD)


def test_dead_head_holds_its_group_until_it_is_tried_again(world):
    """It goes back to the head; what waits behind a dead job is in its order still."""
    first, second = push(world, "g", "g", options=ONE_TRY)
    settings(world, HOLD)
    job = world.one()
    world.fail(job.id, job.delivery)
    assert world.ids() == []
    assert world.queue().groups.find("g").dead_heads == (first,)
    recovers(world)
    [(state, record)] = world.ended().values()
    decide_retry(world.shard, world.now, [(record, state)])
    world.commit()
    recovers(world)
    assert run(world) == [first, second]


def test_dead_head_holds_its_group_until_it_is_deleted(world):
    options = JobOptions(max_attempts=1, rules=JobRules(on_dead_head=OnDeadHead.HOLD))
    first, second = push(world, "g", "g", options=options)
    job = world.one()
    world.fail(job.id, job.delivery)
    assert world.ids() == []
    decide_delete_ended(world.shard, world.now, "q", S.DEAD, [(first, 1)])
    world.commit()
    assert run(world) == [second]
    recovers(world)


def test_dead_head_holds_an_empty_group_too(world):
    """Jobs that come later wait as well; deleting it lets the group vanish."""
    world.settings(group=HOLD)
    [first] = push(world, "g", options=ONE_TRY)
    job = world.one()
    world.fail(job.id, job.delivery)
    assert len(world.queue().groups) == 1
    recovers(world)
    decide_delete_ended(world.shard, world.now, "q", S.DEAD, [(first, 1)])
    world.commit()
    assert not world.queue().groups
    assert not world.shard.group_records
    recovers(world)


@pytest.mark.parametrize(
    "options",
    [
        JobOptions(max_attempts=1, retention=Retention(remove_on_fail=True)),
        JobOptions(max_attempts=1, rules=JobRules(on_dead_head=OnDeadHead.CONTINUE)),
    ],
)
def test_group_goes_on_if_nobody_could_bring_its_dead_head_back(world, options):
    """Or if the job itself says so."""
    world.settings(group=HOLD)
    _, second = push(world, "g", "g", options=options)
    job = world.one()
    world.fail(job.id, job.delivery)
    assert run(world) == [second]


def test_deleting_another_dead_job_frees_no_group(world):
    first, _ = push(world, "g", "g", options=ONE_TRY)
    settings(world, HOLD)
    job = world.one()
    world.fail(job.id, job.delivery)
    [other] = push(world, "", options=ONE_TRY)
    alone = world.one()
    world.fail(alone.id, alone.delivery)
    decide_delete_ended(world.shard, world.now, "q", S.DEAD, [(other, 1)])
    assert world.queue().groups.find("g").dead_heads == (first,)


def test_group_that_never_had_a_record_needs_none_deleted(world):
    push(world, "g")
    note_record(world.shard, world.queue().groups.find("g"), 7)
    assert not world.shard.group_records
    assert not world.shard.changes.groups.to_delete


def test_record_that_a_checkpoint_has_is_deleted_when_the_group_needs_none(world):
    push(world, "g")
    settings(world, HOLD)
    group, changes = world.queue().groups.find("g"), world.shard.changes.groups
    [number] = world.shard.group_records
    assert changes.to_write == {number}
    group.stored = True
    settings(world, NO_GROUP_SETTINGS)
    assert not world.shard.group_records
    assert (changes.to_write, changes.to_delete) == (set(), [number])
    assert not group.stored
