"""Groups with a rate, and groups that let nothing out for a time (G14)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobline_server.engine import limits
from jobline_server.engine.allowance import TimeLimit
from jobline_server.engine.commands import Refused, ReleaseItem
from jobline_server.engine.decide import group_limits
from jobline_server.engine.decide.group_limits import decide_limit_group
from jobline_server.engine.decide.groups import decide_pause_group, decide_resume_group
from jobline_server.engine.decide.queues import LIMITED_BY_WORKER, decide_delete_queue
from jobline_server.engine.decide.timers import next_deadline
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import JobOptions, JobState, ReleaseReason
from tests.unit.engine.limiter_world import restart
from tests.unit.engine.test_apply_groups import push, recovers, settings
from tests.unit.engine.world import World, leases_of

ONE_A_SECOND = RateLimit(1, 1_000, 2)
RATED = GroupSettings(rate=ONE_A_SECOND, concurrency=3)


def leases(world: World, most: int = 100) -> list[tuple[int, int]]:
    """What a consumer gets that asks until it gets nothing."""
    found: list[tuple[int, int]] = []
    while len(found) < most and (got := leases_of(world.lease(most - len(found)))):
        found += got
    return found


def ids(world: World, most: int = 100) -> list[int]:
    return [job_id for job_id, _ in leases(world, most)]


def limit(world: World, ms: int, group: str = "g") -> None:
    until_ms = world.now.wall_ms + ms if ms else 0
    decide_limit_group(world.shard, world.now, "q", group, until_ms, "ann", "429")
    world.commit()


def group_of(world: World, name: str = "g"):
    return world.queue().groups.find(name)


def tick(world: World, ms: int) -> None:
    world.tick(ms)
    world.commit()


def test_group_that_has_used_up_its_rate_lets_others_pass(world):
    """It is closed until its next token, and its jobs keep their order."""
    world.settings(group=RATED)
    first, second, third, fourth = push(world, "g", "g", "g", "g")
    (other,) = push(world, "h")
    assert ids(world) == [first, second, other]
    assert group_of(world).is_used_up
    assert world.shard.closed_groups.wait_ms(world.now) == 1_000
    recovers(world)
    tick(world, 999)
    assert ids(world) == []
    tick(world, 1)
    assert group_of(world).limited is None
    assert ids(world) == [third]
    world.ack(leases_of_active(world))
    tick(world, 1_000)
    assert ids(world) == [fourth]
    recovers(world)


def test_closed_groups_cost_a_pull_nothing(world, monkeypatch):
    """A pull that comes upon many of them goes on in the next iteration of the loop, and then none
    of them is in a lane.
    """
    monkeypatch.setattr(group_limits, "CHOICES_MAX", 3)
    world.settings(group=GroupSettings(rate=RateLimit(1, 60_000)))
    names = [f"g{number}" for number in range(5)]
    for _ in range(2):
        push(world, *names)
    assert len(ids(world)) == 5
    world.ack(leases_of_active(world))
    assert ids(world, 1) == []
    assert world.shard.gates.first_ms() == world.now.mono_ms
    assert ids(world, 1) == []
    assert [*world.queue().lanes()] == []
    assert world.queue().groups.held == 5


def test_a_pull_closes_so_many_groups_and_no_more(world, monkeypatch):
    """No step takes long, and jobs behind those go out in the next one."""
    monkeypatch.setattr(group_limits, "CLOSED_MAX", 2)
    world.settings(group=GroupSettings(rate=RateLimit(1, 60_000)))
    names = [f"g{number}" for number in range(5)]
    for _ in range(2):
        push(world, *names)
    assert len(ids(world)) == 5
    world.ack(leases_of_active(world))
    (other,) = push(world, "other")
    for held in (2, 4):
        assert leases_of(world.lease(100)) == []
        assert world.queue().groups.held == held
        assert world.shard.gates.first_ms() == world.now.mono_ms
        world.check()
    assert ids(world) == [other]


def leases_of_active(world: World) -> list[tuple[int, int]]:
    jobs = world.shard.jobs.values()
    return [(job.id, job.delivery) for job in jobs if job.state is JobState.ACTIVE]


def test_group_of_its_own_rate(world):
    """The others have none; without it, the group has none either."""
    settings(world, GroupSettings(rate=RateLimit(1, 1_000), concurrency=5))
    first, second = push(world, "g", "g")
    others = push(world, "h", "", "i")
    assert ids(world) == [first, *others]
    settings(world, GroupSettings(concurrency=5))
    tick(world, 0)
    assert ids(world) == [second]
    recovers(world)


def test_job_that_costs_more_than_there_is_takes_all(world):
    """A cost over the burst does not wait for ever."""
    world.settings(group=RATED)
    options = JobOptions(rules=JobRules(cost=9))
    first, second = push(world, "g", "g", options=options)
    assert ids(world) == [first]
    tick(world, 1_999)
    assert ids(world) == []
    tick(world, 1)
    assert ids(world) == [second]


def test_g14_restart_lets_nothing_out_at_once(world):
    """Nobody knows which tokens were taken; closed groups stay closed until their next token."""
    world.settings(group=GroupSettings(rate=RateLimit(1, 1_000, 3), concurrency=9))
    settings(world, GroupSettings(rate=RateLimit(1, 2_000), concurrency=9), "own")
    push(world, "g", "g", "g", "g", "h", "own")
    assert len(leases(world)) == 5
    restart(world)
    assert ids(world) == []
    tick(world, 1_000)
    assert len(ids(world)) == 1
    tick(world, 1_000)
    assert ids(world) == []
    limit(world, 0)
    restart(world)
    world.shard.leave_load()


def test_rate_that_is_changed_lets_closed_groups_be_looked_at(world):
    """All of a queue, in slices; one of them at once."""
    month = RateLimit(1, limits.RATE_PERIOD_MS_MAX)
    world.settings(group=GroupSettings(rate=month, concurrency=2))
    settings(world, GroupSettings(rate=month, concurrency=2), "own")
    push(world, "g", "g", "own", "own", "h")
    assert len(ids(world)) == 3
    settings(world, RATED, "own")
    tick(world, 1_000)
    assert len(ids(world)) == 1
    world.settings(group=RATED)
    assert next_deadline(world.shard, world.now) == 0
    while next_deadline(world.shard, world.now) == 0:
        tick(world, 0)
        assert ids(world) == []
        world.shard.gates.open_due(world.now.mono_ms, 100)
    tick(world, 1_000)
    assert len(ids(world)) == 1
    world.settings()
    recovers(world)


def test_group_lets_nothing_out_until_a_time(world):
    first, second = push(world, "g", "g")
    limit(world, 5_000)
    assert group_of(world).limited == TimeLimit(world.now.wall_ms + 5_000, "ann", "429")
    assert ids(world) == []
    recovers(world)
    tick(world, 4_999)
    assert ids(world) == []
    tick(world, 1)
    assert ids(world) == [first]
    assert second in world.shard.jobs
    recovers(world)


def test_limit_of_a_group_is_lifted_or_replaced(world):
    push(world, "g")
    limit(world, 60_000)
    limit(world, 5_000)
    restart(world)
    tick(world, 5_000)
    limit(world, 9_000)
    assert ids(world) == []
    limit(world, 0)
    assert len(ids(world)) == 1
    limit(world, 0)
    limit(world, 0, "nobody")
    assert world.commit() == []
    with pytest.raises(Refused):
        decide_limit_group(world.shard, world.now, "nowhere", "g", 1 << 50, "", "")


def test_group_without_jobs_is_limited_and_forgotten_after_that(world):
    push(world, "other")
    limit(world, 5_000)
    assert group_of(world) is not None
    tick(world, 5_000)
    assert group_of(world) is None
    recovers(world)


def test_limited_group_that_is_paused_stays_paused(world):
    push(world, "g")
    decide_pause_group(world.shard, world.now, "q", "g", "ann", "")
    limit(world, 5_000)
    tick(world, 5_000)
    assert ids(world) == []
    decide_resume_group(world.shard, world.now, "q", "g")
    world.commit()
    assert len(ids(world)) == 1


def test_worker_says_until_when_its_group_is_limited(world):
    """It takes no time back, and no more than the server lets workers say."""
    first, second = push(world, "g", "g")
    (other,) = push(world, "h")
    got = leases(world)
    until_ms = world.now.wall_ms + 9_000
    item = ReleaseItem(*got[0], why=ReleaseReason.LIMITED, until_ms=until_ms)
    world.release(item)
    assert group_of(world).limited == TimeLimit(until_ms, "w1", LIMITED_BY_WORKER)
    assert world.queue().limited is None
    limit(world, 60_000, "h")
    world.release(replace(item, id=got[1][0], delivery=got[1][1]))
    assert group_of(world, "h").limited.by == "ann"
    tick(world, 9_000)
    assert ids(world) == [first]
    assert other in world.shard.jobs
    assert second in world.shard.jobs
    far = ReleaseItem(first, world.shard.jobs[first].delivery, until_ms=1 << 60)
    world.release(far)
    longest_ms = world.shard.load.worker_limit_ms_max
    assert group_of(world).limited.until_ms == world.now.wall_ms + longest_ms


def test_queue_that_is_deleted_leaves_no_closed_groups(world):
    world.settings(group=RATED)
    push(world, "g", "g", "g")
    assert len(ids(world)) == 2
    settings(world, RATED, "own")
    limit(world, 60_000, "h")
    world.settings(group=GroupSettings())
    decide_delete_queue(world.shard, world.now, "q", force=True)
    world.commit()
    tick(world, 120_000)
    world.settings(group=RATED)
    push(world, "g")
    assert len(ids(world)) == 1
    recovers(world)


def test_group_without_a_rate_of_its_own_any_more_has_that_of_its_queue(world):
    world.settings(group=RATED)
    settings(world, GroupSettings(rate=RateLimit(9, 1_000), concurrency=9))
    settings(world, GroupSettings(concurrency=9))
    push(world, "g", "g", "g")
    assert len(ids(world)) == 2


def test_clock_that_is_set_back_does_not_hold_up_a_rate(world):
    """Tokens come by the clock that is never set."""
    world.settings(group=RATED)
    push(world, "g", "g", "g")
    assert len(ids(world)) == 2
    world.now = world.now._replace(wall_ms=world.now.wall_ms - 3_600_000)
    tick(world, 1_000)
    assert len(ids(world)) == 1
