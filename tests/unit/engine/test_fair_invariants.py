"""Damage to the bookkeeping of fair queues is found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jobline_server.engine.invariants import Violation, check
from jobline_server.engine.tenant import Tenant
from tests.unit.engine.fair_world import FairWorld


def _miscount(world: FairWorld, tenant: Tenant) -> None:
    tenant.ready += 1


def _lose(world: FairWorld, tenant: Tenant) -> None:
    world.fair.tenants.remove(tenant)


def _hide(world: FairWorld, tenant: Tenant) -> None:
    world.fair.heaps.clear()


def _mistake_kinds(world: FairWorld, tenant: Tenant) -> None:
    tenant.kinds["x", 0, None] = 1


def _count_busy(world: FairWorld, tenant: Tenant) -> None:
    world.fair.busy += 1


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (_miscount, "G23: queue q: tenant a counts"),
        (_lose, "are its tenants"),
        (_hide, "G23: queue q: tenant . is not found by consumers"),
        (_mistake_kinds, "open lanes of"),
        (_count_busy, "are counted as busy of"),
    ],
)
def test_damage_is_found(damage: Callable[[FairWorld, Tenant], None], told: str) -> None:
    world = FairWorld()
    world.jobs("a", "b")
    world.settings(fair=True, max_attempts=3)
    world.check()
    tenant = world.fair.tenants.find("a")
    assert tenant is not None
    damage(world, tenant)
    with pytest.raises(Violation, match=told):
        check(world.shard)


def test_a_queue_is_as_it_is_set() -> None:
    world = FairWorld()
    world.queue().fair = None
    with pytest.raises(Violation, match="is set to be fair or not, and is not"):
        check(world.shard)


def test_a_tenant_that_is_kept_for_nothing_is_found() -> None:
    """Once all are idle, nobody is remembered."""
    world = FairWorld()
    world.fair.known("a")
    with pytest.raises(Violation, match="1 tenants are known, and none is busy"):
        check(world.shard)
