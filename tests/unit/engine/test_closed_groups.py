"""When groups that let nothing out go on."""

from __future__ import annotations

from jobline_server.engine import limits
from jobline_server.engine.decide import group_limits
from jobline_server.engine.decide.timers import next_deadline
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.rates import RateLimit
from tests.unit.engine.limiter_world import restart
from tests.unit.engine.test_apply_groups import push
from tests.unit.engine.test_group_limits import RATED, ids, leases, leases_of_active, limit, tick


def test_many_groups_are_opened_in_slices(world, monkeypatch):
    monkeypatch.setattr(group_limits, "OPENED_MAX", 1)
    assert not world.shard.closed_groups.has_any
    push(world, "g", "h")
    limit(world, 5_000)
    limit(world, 5_000, "h")
    assert world.shard.closed_groups.has_any
    assert not world.shard.closed_groups.is_due_before(world.now)
    tick(world, 5_001)
    assert world.shard.closed_groups.is_due_before(world.now)
    tick(world, 0)
    assert next_deadline(world.shard, world.now) is None
    assert not world.shard.closed_groups.has_any
    assert len(ids(world)) == 2


def test_group_whose_rate_was_taken_off_before_a_restart_goes_on(world):
    world.settings(group=RATED)
    push(world, "g", "g", "g")
    assert len(ids(world)) == 2
    world.settings()
    restart(world)
    tick(world, 0)
    world.ack(leases_of_active(world))
    assert len(ids(world)) == 1


def test_group_that_is_gone_is_asked_no_more(world):
    month = RateLimit(1, limits.RATE_PERIOD_MS_MAX)
    world.settings(group=GroupSettings(rate=month))
    jobs = push(world, "g", "g")
    world.ack(leases(world))
    assert ids(world) == []
    world.settings(group=RATED)
    part = iter([["gone", "g"]])
    world.shard.closed_groups._asked[0] = (world.queue(), part)
    for _ in range(2):
        tick(world, 0)
    assert not world.shard.closed_groups._asked
    assert ids(world) == []
    tick(world, 1_000)
    assert ids(world) == [jobs[1]]


def test_group_that_used_up_the_new_rate_before_the_timers_came_stays_closed(world):
    """It would take its job out of its lane again, which loses its place among those of others."""
    month = RateLimit(1, limits.RATE_PERIOD_MS_MAX)
    world.settings(group=GroupSettings(concurrency=3))
    jobs = push(world, "g", "g")
    world.settings(group=GroupSettings(concurrency=3, rate=month))
    assert ids(world) == jobs[:1]
    group = world.queue().groups.find("g")
    assert group.is_used_up
    while world.shard.closed_groups._asked:
        tick(world, 0)
    assert group.is_used_up
    world.settings(group=GroupSettings(concurrency=3))
    while world.shard.closed_groups._asked:
        tick(world, 0)
    assert ids(world) == jobs[1:]


def test_times_that_do_not_count_any_more_are_swept(world):
    push(world, "g")
    for number in range(200):
        limit(world, 60_000 + number)
    assert len(world.shard.closed_groups._limited._heap) < 100
    tick(world, 60_199)
    assert len(ids(world)) == 1
