"""Fair queues: tenants are served by weight and by the worker time that they used."""

from __future__ import annotations

import pytest

from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused, ReleaseItem
from jobline_server.engine.decide.admin import decide_cancel, decide_retry
from jobline_server.engine.decide.groups import decide_pause_group, decide_resume_group
from jobline_server.engine.decide.update import JobChange, decide_update
from jobline_server.engine.group_settings import GroupSettings, OnDeadHead
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import FailAction, JobOptions, JobState
from tests.unit.engine.fair_world import FairWorld


@pytest.fixture
def world() -> FairWorld:
    return FairWorld()


def test_tenants_take_turns_however_many_jobs_one_has(world: FairWorld) -> None:
    """Others have fairness by count at best; here the crowd of one delays nobody."""
    world.jobs(*["big"] * 50, "small", "small")
    world.plain(b"no group")
    assert sorted(world.served(3)) == ["big", "small"]
    assert world.fair.tenants.find("") is not None
    world.check()


def test_a_tenant_is_not_serial_unless_its_concurrency_says_so(world: FairWorld) -> None:
    world.jobs("a", "a", "a", "b", "b", "b")
    world.change("b", concurrency=2)
    assert sorted(world.served()) == ["a", "a", "a", "b", "b"]
    world.check()


def test_a_tenant_at_its_concurrency_goes_on_when_a_job_ends(world: FairWorld) -> None:
    first, second = world.jobs("a", "a")
    world.change("a", concurrency=1)
    assert world.served() == ["a"]
    assert world.served() == []
    world.shard.take_applied()
    world.end([first])
    assert any(effects for _, _, effects in world.shard.take_applied())
    assert world.ids() == [second]
    world.check()


def test_full_tenants_go_on_once_their_queue_lets_more_run(
    world: FairWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not before one of their jobs ends: at once, some of them in each hand-out."""
    monkeypatch.setattr(limits, "TENANTS_EXAMINED_MAX", 2)
    world.settings(fair=True, group=GroupSettings(concurrency=1))
    world.jobs("a", "a", "b", "b", "c", "c")
    assert sorted([*world.served(), *world.served()]) == ["a", "b", "c"]
    assert world.served() == []
    world.settings(fair=True, group=GroupSettings(concurrency=2))
    world.check()
    assert sorted([*world.served(), *world.served()]) == ["a", "b", "c"]
    world.check()


def test_priorities_and_lifo_hold_within_a_tenant(world: FairWorld) -> None:
    """G12: among the jobs of one tenant; the tenants themselves have none."""
    low, other = world.jobs("a", "b")
    [high] = world.jobs("a", options=JobOptions(priority=9))
    [front] = world.jobs("a", options=JobOptions(rules=JobRules(lifo=True)))
    world.change("b", weight=1_000)
    found = world.ids()
    assert [job_id for job_id in found if job_id != other] == [high, front, low]
    world.check()


def test_serial_groups_have_no_priority(world: FairWorld) -> None:
    """The refusal names the field in which the job was sent."""
    world.settings(fair=False)
    with pytest.raises(Refused, match="unless queue q is fair") as refused:
        world.jobs("a", options=JobOptions(priority=9))
    assert (refused.value.kind, refused.value.field) == (
        RefusalKind.INVALID_FIELD,
        "jobs[0].options.priority",
    )
    with pytest.raises(Refused) as refused:
        world.jobs("a", options=JobOptions(rules=JobRules(lifo=True)))
    assert refused.value.field == "jobs[0].options.lifo"


def test_weight_is_a_share_of_worker_time(world: FairWorld) -> None:
    """The first hand-out comes before anybody knows how long a job takes; all is even by then."""
    world.jobs(*["light"] * 40, *["heavy"] * 40)
    world.change("heavy", weight=3)
    assert world.served(40).count("heavy") == 30


def test_a_new_weight_counts_from_now_on(world: FairWorld) -> None:
    world.jobs(*["a"] * 40, *["b"] * 40)
    assert world.served(20).count("a") == 10
    world.change("a", weight=4)
    assert world.served(20).count("a") > 14
    world.check()


def test_a_queue_has_a_weight_for_all_its_groups(world: FairWorld) -> None:
    world = FairWorld()
    world.jobs("a")
    world.change("b", weight=7)
    assert (world.fair.weight_of("a"), world.fair.weight_of("b")) == (1, 7)
    tenant = world.fair.tenants.find("a")
    assert tenant is not None
    world.settings(fair=True, group=GroupSettings(weight=4))
    world.fair.charge(tenant)
    assert tenant.weight == 4


def test_what_runs_is_charged_while_it_runs(world: FairWorld) -> None:
    """Nobody waits for slow jobs to end before others are due."""
    world.jobs(*["slow"] * 100)
    assert world.served(10) == ["slow"] * 10
    world.advance(60_000)
    world.jobs(*["late"] * 5)
    assert world.served(5) == ["late"] * 5
    tenant = world.fair.tenants.find("slow")
    assert tenant is not None
    world.fair.charge(tenant)
    assert tenant.used_ms == 600_000 + 10


def test_a_tenant_that_was_away_has_saved_nothing_up(world: FairWorld) -> None:
    """It takes turns from now on, and does not make up for the time when it wanted nothing."""
    world.jobs(*["here"] * 60)
    for _ in range(4):
        held = world.ids(5)
        world.advance(1_000)
        world.end(held)
    world.jobs(*["new"] * 60)
    # The last five that ended are charged after their hand-out, which is the present.
    assert 10 <= world.served(20).count("new") <= 13


def test_going_away_for_a_moment_is_no_way_to_the_front(world: FairWorld) -> None:
    """A tenant that has no job left and had more than others is remembered."""
    world.jobs(*["a"] * 2, *["b"] * 50)
    world.change("b", concurrency=1)
    held = [job.id for job in world.lease(3).jobs]
    world.advance(10_000)
    world.end([job_id for job_id in held if world.shard.jobs[job_id].ties.group == "a"])
    assert world.names() == {"a", "b"}
    world.change("b")
    world.jobs("a")
    assert world.served(1) == ["b"]
    world.check()


def test_nothing_is_remembered_once_all_are_idle(world: FairWorld) -> None:
    """G19: drained, a queue holds no tenant and no worker time of anybody."""
    ids = world.jobs("a", "b", "a")
    world.served()
    world.advance(5_000)
    world.end(ids)
    assert world.names() == set()
    assert world.fair.present_ns == 0
    world.check()


def test_tenants_that_others_have_caught_up_with_are_forgotten(world: FairWorld) -> None:
    world.jobs("a", *["b"] * 60)
    first = world.lease(1).jobs[0]
    assert first.group == "a"
    world.advance(500)
    world.end([first.id])
    assert world.names() == {"a", "b"}
    held = world.ids(10)
    world.advance(2_000)
    world.end(held)
    world.served(1)
    assert world.names() == {"b"}
    world.check()


def test_few_idle_tenants_are_remembered(world: FairWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are ahead least are forgotten first."""
    monkeypatch.setattr(limits, "TENANTS_AHEAD_MAX", 2)
    world.jobs("busy", "busy", *[f"t{number}" for number in range(4)])
    held = {job.group: job.id for job in world.lease(5).jobs}
    for number in range(4):
        world.advance(1_000)
        world.end([held[f"t{number}"]])
    assert world.names() == {"busy", "t2", "t3"}
    world.check()


def test_a_job_comes_back_to_a_tenant_that_is_remembered(world: FairWorld) -> None:
    """What was said of it while it was idle is said no more."""
    world.jobs("a", *["b"] * 9)
    world.served(2)
    held = [job.id for job in world.shard.jobs.values() if job.state is JobState.ACTIVE]
    world.advance(3_000)
    world.end(held[:1])
    world.jobs("a")
    world.end(held[1:])
    assert set(world.served(9)) == {"a", "b"}
    world.check()


def test_one_that_is_paused_or_held_is_passed_over(world: FairWorld) -> None:
    [dead, _, _] = world.jobs("a", "a", "b")
    decide_pause_group(world.shard, world.now, "q", "b", "ann", "why")
    world.change("a", on_dead_head=OnDeadHead.HOLD)
    lease = world.one()
    assert lease.id == dead
    world.fail(dead, lease.delivery, then=FailAction.DEAD)
    assert world.served() == []
    decide_resume_group(world.shard, world.now, "q", "b")
    assert world.served() == ["b"]
    world.check()


def test_a_dead_head_that_is_retried_goes_to_the_front_of_its_tenant(world: FairWorld) -> None:
    dead, after = world.jobs("a", "a")
    world.change("a", on_dead_head=OnDeadHead.HOLD)
    world.fail(dead, world.one().delivery, then=FailAction.DEAD)
    state, record = world.ended()[dead]
    assert decide_retry(world.shard, world.now, [(record, state)]) == []
    world.commit()
    assert world.ids() == [dead, after]
    world.check()


def test_released_and_failed_jobs_stay_with_their_tenant(world: FairWorld) -> None:
    first, second, third = world.jobs("a", "a", "a")
    leases = world.lease().jobs
    world.release(ReleaseItem(first, leases[0].delivery))
    world.release(ReleaseItem(second, leases[1].delivery, delay_ms=1_000))
    world.fail(third, leases[2].delivery, retry_after_ms=0)
    world.check()
    assert world.ids() == [first, third]
    world.tick(1_000)
    assert world.ids() == [second]


def test_waiting_jobs_can_change_their_priority(world: FairWorld) -> None:
    first, second = world.jobs("a", "a")
    decide_update(world.shard, world.now, second, JobChange(priority=4))
    world.commit()
    assert world.ids() == [second, first]
    world.check()


def test_waiting_jobs_of_a_tenant_can_be_cancelled(world: FairWorld) -> None:
    first, second = world.jobs("a", "a")
    decide_cancel(world.shard, world.now, [first])
    world.commit()
    world.check()
    assert world.ended()[first][0] is JobState.CANCELLED
    assert world.ids() == [second]


def test_tenants_before_one_are_those_that_used_less_and_have_jobs(world: FairWorld) -> None:
    world.jobs("a", "b", "c", "d")
    tenants = {tenant.name: tenant for tenant in world.fair.tenants}
    for at, tenant in enumerate(tenants.values()):
        tenant.virtual_ns = at
    assert [tenant.name for tenant in world.fair.before(tenants["c"])] == ["a", "b"]
    tenants["a"].kinds.clear()
    assert [tenant.name for tenant in world.fair.before(tenants["c"])] == ["b"]
