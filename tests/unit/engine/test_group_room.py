"""Room in groups: how deep one may be, and how many there may be."""

from __future__ import annotations

import pytest

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.groups import decide_pause_group, decide_update_group
from jobline_server.engine.group_settings import GroupSettings, OnDeadHead
from jobline_server.engine.load import Load
from jobline_server.engine.room import fitting
from jobline_server.engine.values import DEFAULT_OPTIONS, JobOptions
from tests.pushed_rows import NewJob
from tests.unit.engine.test_apply_groups import push
from tests.unit.engine.world import World, leases_of


def test_jobs_over_the_depth_of_a_group_are_refused_together(world):
    """Nothing of the push is stored; what runs takes no room, and consumers go on."""
    world.settings(group=GroupSettings(max_waiting=2))
    push(world, "g")
    world.lease()
    push(world, "g", "g")
    with pytest.raises(Refused, match="2 of 2 waiting jobs") as refused:
        push(world, "h", "g")
    assert refused.value.kind is RefusalKind.GROUP_FULL
    assert refused.value.retry_after_ms
    assert world.queue().groups.find("h") is None
    push(world, "h", "h")


def test_new_groups_over_the_limit_are_refused_and_known_ones_go_on():
    """By a push as by an operator."""
    world = World(Load(groups_max=2))
    push(world, "a", "b", "a")
    for refuse in (
        lambda: push(world, "a", "c"),
        lambda: decide_pause_group(world.shard, world.now, "q", "c", "", ""),
        lambda: decide_update_group(
            world.shard, world.now, "new", "c", GroupSettings(concurrency=2), None
        ),
    ):
        with pytest.raises(Refused) as refused:
            refuse()
        assert refused.value.kind is RefusalKind.GROUPS_FULL
    assert "new" not in world.shard.queues
    push(world, "a", "b", "")


def test_first_push_to_a_queue_has_the_limits_of_none(world):
    """There is no queue yet, and the defaults hold."""
    with pytest.raises(Refused) as refused:
        push(world, *["g"] * 100_001)
    assert refused.value.kind is RefusalKind.GROUP_FULL


def test_ended_jobs_come_back_only_while_their_group_has_room(world):
    """First come, first served."""
    world.settings(group=GroupSettings(max_waiting=2), max_attempts=1)
    push(world, "g", "g")
    for _ in range(2):
        job = world.one()
        world.fail(job.id, job.delivery)
    records = [record for _, record in world.ended().values()]
    assert fitting(world.shard, records) == ({one.id: None for one in records}, None)
    push(world, "g")
    fits, refusal = fitting(world.shard, records)
    assert list(fits) == [records[0].id]
    assert refusal is not None
    assert refusal.kind is RefusalKind.GROUP_FULL


def test_settings_change_field_by_field(world):
    """A masked field that is unset is as the queue has it; a group of defaults is none."""
    decide_update_group(world.shard, world.now, "q", "g", GroupSettings(concurrency=2), None)
    group = world.queue().groups.find("g")
    mask = frozenset({"on_dead_head"})
    change = GroupSettings(concurrency=5, on_dead_head=OnDeadHead.HOLD)
    decide_update_group(world.shard, world.now, "q", "g", change, mask)
    assert group.settings == GroupSettings(concurrency=2, on_dead_head=OnDeadHead.HOLD)
    entries = len(world.shard.entries)
    decide_update_group(world.shard, world.now, "q", "g", change, mask)
    assert len(world.shard.entries) == entries
    decide_update_group(world.shard, world.now, "q", "g", GroupSettings(), None)
    assert not world.queue().groups


def test_pull_at_a_queue_whose_ready_jobs_are_all_held_looks_at_nothing(world):
    """However many they are."""
    push(world, *["g"] * 50)
    [lease] = leases_of(world.lease())
    queue = world.queue()
    assert queue.groups.held == 49
    assert [*queue.lanes()] == []
    assert world.lease().count() == 0
    world.ack([lease])
    assert world.lease().count() == 1


def test_jobs_with_options_of_their_own_beside_those_of_groups_stay_in_order(world):
    """Those of no group are put where they were pushed."""
    ids = push(world, "", "g", "")
    world.push(jobs=[NewJob(b"x", JobOptions(name="n")), NewJob(b"y", DEFAULT_OPTIONS)])
    assert world.ids()[:3] == ids
