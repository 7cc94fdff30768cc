"""What a consumer of a fair queue gets, and that it is fair."""

from __future__ import annotations

from heapq import heappop, heappush
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobline_server.engine import limits
from jobline_server.engine.commands import Refused
from jobline_server.engine.decide.lease import decide_lease
from jobline_server.engine.decide.update import JobChange, decide_update
from jobline_server.engine.holder import Holder
from jobline_server.engine.lane import SMALL_BYTES
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import JobOptions
from tests.unit.engine.fair_world import FairWorld


@pytest.fixture
def world() -> FairWorld:
    return FairWorld()


def test_consumers_get_what_they_may_have(world: FairWorld) -> None:
    """Names, sizes and versions; tenants of others cost nothing and lose no turn."""
    world.jobs("a", options=JobOptions(name="x"))
    world.jobs("b", options=JobOptions(name="y"))
    world.jobs("c", options=JobOptions(rules=JobRules(min_worker_version="2")))
    assert world.served(names=frozenset({"y"})) == ["b"]
    assert world.served(names=frozenset({"y", "z", "u", "v"})) == []
    assert world.served(names=frozenset({"x", "y", "z", "u"})) == ["a"]
    holder = world.shard.clocks.holder_of("s", "w", "1.9")
    assert world.served(holder=holder) == []
    newer = world.shard.clocks.holder_of("t", "w", "2")
    assert world.served(holder=newer) == ["c"]
    world.check()


def test_lots_are_leased_as_runs(world: FairWorld) -> None:
    """Jobs without a group are one tenant, and a million of them one lot."""
    world.plain(*[b"x"] * 100)
    [run] = world.lease(40).runs
    assert len(run.payloads) == 40
    world.jobs("a", "a")
    leased = world.lease(4)
    assert [job.group for job in leased.jobs] == ["a", "a"]
    assert sum(len(run.payloads) for run in leased.runs) == 2
    world.ack([(run.first_id + index, run.delivery) for index in range(40)])
    world.check()


def test_room_is_counted_across_tenants(world: FairWorld) -> None:
    """Bytes, places of a window and the number of jobs; one too large is left for later."""
    world.push(payloads=[b"y" * 60, b"z" * 60])
    world.jobs("a", options=JobOptions(rules=JobRules(slots=3)))
    assert len(world.ids(max_bytes=70)) == 2
    holder = world.session()
    world.jobs("a", "b")
    assert len(world.ids(1, holder=holder)) == 1
    world.push(payloads=[b"w" * 500])
    assert len(world.ids(5, holder=holder, max_bytes=1)) == 1
    world.check()


def test_large_payloads_have_lanes_of_their_own(world: FairWorld) -> None:
    small, large = world.jobs("a", "a")
    decide_update(world.shard, world.now, large, JobChange(b"x" * (SMALL_BYTES + 1)))
    world.commit()
    assert world.ids() == [small, large]
    world.check()


def test_jobs_that_are_not_on_disk_hold_up_their_tenant_alone(world: FairWorld) -> None:
    """G3"""
    world.jobs("a")
    world.jobs("b")
    committed = world.shard.committed
    world.shard.committed = committed - 1
    leased = decide_lease(
        world.shard,
        world.now,
        world.queue(),
        Holder("w", ""),
        max_jobs=9,
        max_bytes=99,
        names=None,
        lease_ms=0,
    )
    assert [job.group for job in leased.jobs] == ["a"]


def test_few_tenants_are_examined_in_one_hand_out(
    world: FairWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one goes on."""
    monkeypatch.setattr(limits, "TENANTS_EXAMINED_MAX", 3)
    world.jobs(*[f"t{number}" for number in range(7)])
    assert [len(world.served()) for _ in range(4)] == [3, 3, 1, 0]
    world.check()


def test_depth_of_a_tenant_has_no_limit_but_its_own(
    world: FairWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million jobs of one tenant are what a fair queue is for."""
    monkeypatch.setattr(limits, "GROUP_WAITING_MAX", 2)
    world.jobs(*["a"] * 5)
    world.change("b", max_waiting=2)
    world.jobs("b", "b")
    world.served()
    world.jobs("b", "b")
    with pytest.raises(Refused, match="2 of 2"):
        world.jobs("b")


def test_restart_makes_all_equal(world: FairWorld) -> None:
    """What runs is counted again, from now on."""
    world.jobs(*["a"] * 9, *["b"] * 9)
    world.plain(b"x", b"y")
    world.served(6)
    world.advance(50_000)
    shard = world.recovered()
    shard.restart_leases(world.now)
    world.shard = shard
    world.shard.committed = world.shard.next_offset = 100
    assert [tenant.used_ms for tenant in world.fair.tenants] == [0, 0, 0]
    assert sum(tenant.active for tenant in world.fair.tenants) == 6
    world.check()


@given(
    weights=st.lists(st.integers(1, 9), min_size=2, max_size=4),
    longest=st.lists(st.integers(1, 2_000), min_size=4, max_size=4),
    slots=st.integers(1, 12),
    seed=st.integers(0, 99),
)
@settings(max_examples=25, deadline=None)
def test_g23_worker_time_per_weight_differs_by_a_bound(
    weights: list[int], longest: list[int], slots: int, seed: int
) -> None:
    """While two tenants have jobs that wait all the time, none has used more for its weight than
    the other, but for the jobs that each has ACTIVE at once, each as long as the longest.
    """
    world, random = FairWorld(), Random(seed)
    tenants = {f"t{index}": weight for index, weight in enumerate(weights)}
    for name, weight in tenants.items():
        world.change(name, weight=weight)
        world.jobs(*[name] * 300)
    running: list[tuple[int, int]] = []
    most = dict.fromkeys(tenants, 0)
    now_ms = 0
    for _ in range(200):
        for job in world.lease(slots - len(running)).jobs:
            takes_ms = random.randint(0, longest[int(job.group[1:])])
            heappush(running, (now_ms + takes_ms, job.id))
        active = {tenant.name: tenant.active for tenant in world.fair.tenants}
        most = {name: max(most[name], active[name]) for name in tenants}
        ends_ms, job_id = heappop(running)
        world.advance(ends_ms - now_ms)
        now_ms = ends_ms
        world.end([job_id])
    found = {tenant.name: tenant for tenant in world.fair.tenants}
    for tenant in found.values():
        world.fair.charge(tenant)
    spans = {
        name: (max(longest) + 1 + 100) * (most[name] + 1) / weight
        for name, weight in tenants.items()
    }
    for one in tenants:
        for other in tenants:
            ahead_ms = (found[one].virtual_ns - found[other].virtual_ns) / 1_000_000
            assert ahead_ms <= spans[one] + spans[other]
