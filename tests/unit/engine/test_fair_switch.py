"""Queues that become fair, or are not any more, while jobs wait and run."""

from __future__ import annotations

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.decide.admin import decide_cancel
from jobline_server.engine.decide.groups import decide_pause_group, decide_resume_group
from jobline_server.engine.gates import UNTIL_NOTICE
from jobline_server.engine.group_settings import GroupSettings
from jobline_server.engine.lane import lane_key
from jobline_server.engine.values import JobOptions, JobState
from tests.shard_image import image_of
from tests.unit.engine.fair_world import FairWorld
from tests.unit.engine.lines_run import lines_run


@pytest.fixture
def world() -> FairWorld:
    """A world whose queue is not fair yet."""
    world = FairWorld()
    world.settings()
    return world


def test_what_groups_hold_is_handed_out_once_the_queue_is_fair(world: FairWorld) -> None:
    """In the order of each group; what runs counts for its tenant."""
    ids = world.jobs("a", "a", "a", "b", "", "a")
    world.plain(b"x", b"y")
    first = world.one()
    world.one()
    assert first.id == ids[0]
    world.settings(fair=True)
    world.check()
    found = world.ids()
    assert [job_id for job_id in found if job_id in ids[:3] or job_id == ids[5]] == [
        ids[1],
        ids[2],
        ids[5],
    ]
    assert len(found) == 6
    tenant = world.fair.tenants.find("a")
    assert tenant is not None
    assert tenant.active == 4
    world.check()
    assert image_of(world.recovered()) == image_of(world.shard)


def test_groups_are_serial_again(world: FairWorld) -> None:
    """What runs was let in, and what waits goes on after it, in the order it became READY."""
    world.settings(fair=True)
    ids = world.jobs("a", "a", "a", "b")
    [high] = world.jobs("a", options=JobOptions(priority=5))
    assert world.ids(3)
    running = [i for i in (*ids, high) if world.state(i) is JobState.ACTIVE]
    world.settings(fair=False)
    world.check()
    assert world.ids() == []
    world.end(running)
    rest = []
    while found := world.ids():
        rest += found
        world.end(found)
    assert sorted([*running, *rest]) == [*ids, high]
    assert rest == sorted(rest)
    world.check()
    assert image_of(world.recovered()) == image_of(world.shard)


def test_groups_are_let_in_by_their_first_jobs(world: FairWorld) -> None:
    """Whichever group came first into the queue."""
    world.settings(fair=True)
    ids = world.jobs("b", "a", "b")
    assert world.ids(1) == ids[:1]
    world.end(ids[:1])
    world.settings(fair=False)
    world.check()
    assert world.ids() == ids[1:]
    assert image_of(world.recovered()) == image_of(world.shard)


def test_a_paused_group_stays_paused(world: FairWorld) -> None:
    world.jobs("a", "a")
    decide_pause_group(world.shard, world.now, "q", "a", "ann", "why")
    world.settings(fair=True)
    assert world.ids() == []
    world.settings(fair=False)
    assert world.ids() == []
    world.check()
    decide_resume_group(world.shard, world.now, "q", "a")
    world.commit()
    assert len(world.ids()) == 1


def test_lanes_with_closed_gates_are_left_behind(world: FairWorld) -> None:
    """A gate belongs to its lane, and opens onto nothing."""
    world.settings(fair=True)
    first, _ = world.jobs("a", "")
    key = lane_key(world.shard.jobs[first])
    world.queue().close_gate(key, UNTIL_NOTICE)
    world.check()
    world.settings(fair=False)
    assert len(world.ids()) == 2
    world.settings(fair=True)
    world.queue().open_gate(key)
    world.check()


def test_many_live_jobs_of_groups_are_not_switched(
    world: FairWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would all move in one step."""
    monkeypatch.setattr(limits, "FAIR_SWITCH_JOBS_MAX", 12)
    monkeypatch.setattr(limits, "FAIR_SWITCH_GROUP_JOBS", 5)
    world.jobs("a", "a", "a", "b", "", "")
    with pytest.raises(Refused, match="more than 12 live jobs") as refused:
        world.settings(fair=True)
    assert refused.value.kind is RefusalKind.WRONG_STATE
    world.jobs("c")
    with pytest.raises(Refused):
        world.settings(fair=True)
    assert world.queue().fair is None


def test_other_settings_of_a_fair_queue_count_at_once(world: FairWorld) -> None:
    world.settings(fair=True)
    world.jobs("a")
    world.change("b", concurrency=1)
    fair = world.fair
    world.settings(fair=True, max_attempts=7)
    assert world.fair is fair
    world.check()


def test_jobs_that_were_let_in_go_before_those_that_wait(world: FairWorld) -> None:
    """Also where their leases were lost, in this order."""
    world.settings(group=GroupSettings(concurrency=2))
    ids = world.jobs("a", "a", "a", "a", "a")
    running = world.ids()
    assert running == ids[:2]
    world.advance(10 * limits.LEASE_MS_DEFAULT)
    world.tick()
    world.settings(fair=True)
    world.check()
    assert world.ids() == ids
    assert image_of(world.recovered()) == image_of(world.shard)


def test_cancelled_jobs_of_a_tenant_are_in_no_group_when_the_queue_is_fair_no_more(
    world: FairWorld,
) -> None:
    """Lanes still have them, as nobody has taken anything from there since."""
    world.settings(fair=True)
    ids = world.jobs("a", "a", "b", "a")
    decide_cancel(world.shard, world.now, ids[1:3])
    world.commit()
    world.settings(fair=False)
    world.check()
    assert world.ids() == [ids[0]]
    assert [group.name for group in world.queue().groups] == ["a"]


@pytest.mark.parametrize("fair", [True, False])
def test_many_jobs_of_a_group_are_switched_in_few_steps(fair: bool) -> None:
    """As a list, not one by one: so 20,000 of them take no longer than 2,000 did."""

    def lines(count: int) -> int:
        world = FairWorld()
        world.settings(fair=not fair)
        world.jobs(*["a"] * count)
        return lines_run(lambda: world.settings(fair=fair))

    assert (lines(300) - lines(100)) / 200 < 16
