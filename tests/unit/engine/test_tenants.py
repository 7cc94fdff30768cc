"""The parts that fair queues are made of: tenants, their heaps, and what is remembered of them."""

from __future__ import annotations

import gc

import pytest

from jobline_server.engine import tenant as tenant_module
from jobline_server.engine.commands import ReleaseItem
from jobline_server.engine.decide.groups import decide_pause_group
from jobline_server.engine.name_table import UNPARTED_MAX, NameTable
from jobline_server.engine.open_lanes import OpenLanes
from jobline_server.engine.tenant import AttemptTimes, Kind, Tenant
from jobline_server.engine.tenant_heap import SPARE, TenantHeap
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobOptions, JobState
from tests.pushed_rows import NewJob
from tests.unit.engine.fair_world import FairWorld
from tests.unit.engine.lines_run import lines_run

KIND: Kind = ("", 0, None)


def a_tenant(name: str, *, virtual_ns: int = 0) -> Tenant:
    tenant = Tenant(name, OpenLanes(), expected_ms=10)
    tenant.virtual_ns = virtual_ns
    tenant.kinds[KIND] = 1
    return tenant


def test_worker_time_is_divided_by_weight() -> None:
    """And grows by as many seconds a second as jobs are ACTIVE."""
    tenant = a_tenant("a")
    tenant.weight, tenant.members = 4, 3
    assert tenant.advance(1_000) == 3_000
    assert tenant.advance(900) == 0
    assert (tenant.used_ms, tenant.virtual_ns) == (3_000, 750_000_000)
    assert tenant.key_ns() == 750_000_000 + 3 * 10 * 1_000_000 // 4
    assert tenant.step_ns() == 11 * 1_000_000 // 4


def test_newer_attempts_count_more_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenant_module, "REMEMBERED", 4)
    times = AttemptTimes(100)
    times.add(1, 300)
    assert times.mean_ms == 200
    for _ in range(40):
        times.add(1, 10)
    assert times.mean_ms <= 14
    times.add(1, -5)
    assert times.mean_ms >= 0


def test_heap_gives_the_lowest_key_first() -> None:
    heap = TenantHeap(KIND)
    low, high = a_tenant("low"), a_tenant("high")
    heap.note(high, 9)
    heap.note(low, 5)
    heap.note(low, 7)
    assert heap.first_ns() == 5
    assert heap.take_first() is low
    assert heap.first_ns() == 9
    heap.note(high, 3)
    assert heap.first_ns() == 3
    del high.kinds[KIND]
    assert heap.first_ns() is None
    assert len(heap) == 0


def test_heap_drops_what_counts_no_more() -> None:
    """Keys that fall again and again leave few entries behind."""
    heap = TenantHeap(KIND)
    tenant = a_tenant("a")
    for key in range(10 * SPARE, 0, -1):
        heap.note(tenant, key)
    assert len(heap) <= SPARE + 3
    assert heap.first_ns() == 1


def test_heap_of_many_is_swept_a_few_at_a_time() -> None:
    """It has a million tenants, of which each has an entry that counts no more."""
    heap = TenantHeap(KIND)
    tenants = [a_tenant(f"t{number}") for number in range(300)]

    def note(keys: range) -> None:
        for tenant, key in zip(tenants, keys, strict=True):
            heap.note(tenant, key)

    for first in (3_000, 2_000):
        note(range(first, first + 300))
    few = lines_run(lambda: heap.note(tenants[0], 1_500))
    note(range(1_000, 1_300))
    assert lines_run(lambda: heap.note(tenants[0], 500)) < few + 80
    for first in (400, 300, 200, 100, 0):
        note(range(first - 300, first))
        assert len(heap) < 3 * 300 + SPARE
    for key in range(-300, -200):
        assert heap.first_ns() == key
        heap.take_first()
    heap.clear()
    assert heap.first_ns() is None


@pytest.mark.parametrize(("fair", "most"), [(False, 3.1), (True, 10.1)])
def test_a_job_of_a_group_of_its_own_is_few_objects(fair: bool, most: float) -> None:
    """A million of them are a million times as many. They were 4 and 18."""
    world = FairWorld()
    world.settings(fair=fair)
    names = [f"g{number}" for number in range(2_000)]
    world.jobs(*names[:1_000])
    gc.collect()
    before = len(gc.get_objects())
    world.jobs(*names[1_000:])
    world.journal.clear()
    gc.collect()
    assert (len(gc.get_objects()) - before) / 1_000 < most


def test_jobs_of_a_group_share_their_ties() -> None:
    """Each came with its own; those that have more than their group keep theirs."""
    world = FairWorld()
    first, second = (world.shard.jobs[job_id] for job_id in world.jobs("a", "a"))
    assert first.ties is second.ties
    own = NewJob(b"x", DEFAULT_OPTIONS, ties=Ties("a", unique_key="u"))
    with_key = world.shard.jobs[world.push(jobs=[own]).first_id]
    assert with_key.ties.unique_key == "u"


@pytest.mark.parametrize("count", [9, UNPARTED_MAX + 9])
def test_names_come_in_parts(count: int) -> None:
    table: NameTable[Tenant] = NameTable()
    names = [f"t{number}" for number in range(count)]
    for name in names:
        table.add(a_tenant(name))
    assert sorted(name for part in table.names() for name in part) == sorted(names)
    assert sorted(tenant.name for tenant in table) == sorted(names)
    assert max(len(part) for part in table.names()) <= UNPARTED_MAX
    found = table.find("t3")
    assert found is not None
    table.remove(found)
    assert (len(table), bool(table), table.find("t3")) == (count - 1, True, None)


def test_a_group_that_only_runs_gets_its_new_weight() -> None:
    world = FairWorld()
    world.jobs("a")
    world.served()
    world.change("a", weight=5)
    tenant = world.fair.tenants.find("a")
    assert tenant is not None
    assert tenant.weight == 5
    world.check()


def test_tenant_that_is_not_ahead_is_forgotten_at_once() -> None:
    world = FairWorld()
    [first, *_] = world.jobs("a", "b", "b", "b")
    world.change("b", weight=1)
    held = {job.group: job for job in world.lease(2).jobs}
    assert set(held) == {"a", "b"}
    world.end([held["a"].id])
    assert world.names() == {"b"}
    assert world.state(first) is None
    world.check()


def test_tenant_that_comes_back_within_a_step_is_kept() -> None:
    """A job that moves to another lane leaves its tenant for a moment only."""
    world = FairWorld()
    world.jobs("b")
    world.served()
    first, _ = world.jobs("a", "c")
    tenant = world.fair.tenants.find("a")
    from_lane = world.shard.jobs[first]
    world.queue().leave(from_lane, 1)
    assert tenant is not None
    assert not tenant.is_busy()
    world.queue().put(from_lane, 1)
    world.fair.forget_idle()
    assert world.fair.tenants.find("a") is tenant


def test_restart_forgets_who_is_idle() -> None:
    world = FairWorld()
    world.jobs("a", "b", "b")
    held = {job.group: job.id for job in world.lease(2).jobs}
    world.advance(9_000)
    world.end([held["a"]])
    assert world.names() == {"a", "b"}
    world.fair.restart(world.now.mono_ms)
    assert world.names() == {"b"}
    world.check()


def test_jobs_that_are_never_written_have_tenants_too() -> None:
    """Only jobs of groups are written at all events."""
    world = FairWorld()
    row = world.row(level=AckLevel.MEMORY)
    lease = world.one()
    world.release(ReleaseItem(row, lease.delivery))
    lease = world.one()
    world.fail(row, lease.delivery, retry_after_ms=0)
    assert world.ids() == [row]
    world.check()


def test_groups_without_a_tenant_are_switched() -> None:
    """Those that only have jobs for later."""
    world = FairWorld()
    world.jobs("a")
    lease = world.one()
    world.release(ReleaseItem(lease.id, lease.delivery, delay_ms=5_000))
    assert world.names() == set()
    world.settings(fair=False)
    world.check()
    world.tick(5_000)
    assert world.ids() == [lease.id]


def test_one_too_large_stops_the_hand_out() -> None:
    world = FairWorld()
    world.jobs("a", "b")
    holder = world.session()
    assert len(world.ids(1, holder=holder)) == 1
    assert world.ids(holder=holder, max_bytes=0) == []
    assert len(world.ids(holder=holder, max_bytes=1)) == 1


def test_a_tenant_closes_while_it_is_served() -> None:
    world = FairWorld()
    world.jobs(*["a"] * 5)
    world.change("a", concurrency=3)
    assert len(world.ids()) == 3
    decide_pause_group(world.shard, world.now, "q", "a", "ann", "why")
    world.end([job.id for job in world.shard.jobs.values() if job.state is JobState.ACTIVE])
    assert world.ids() == []
    world.check()


def test_a_full_hand_out_ends_between_two_tenants() -> None:
    world = FairWorld()
    world.jobs("a", "b", "c", options=JobOptions(name="n"))
    assert [len(world.ids(1)) for _ in range(4)] == [1, 1, 1, 0]
