"""Short words for what tests do with limiters."""

from __future__ import annotations

from jobline_server.engine import limits
from jobline_server.engine.decide.limiters import (
    decide_put_limiter,
)
from jobline_server.engine.rates import RateLimit
from jobline_server.engine.rules import JobRules
from jobline_server.engine.values import JobOptions
from tests.unit.engine.world import World, leases_of

ONE_A_SECOND = RateLimit(1, 1_000, 2)


def put(world: World, name: str = "api", rate: RateLimit | None = None, most: int | None = None):
    decide_put_limiter(world.shard, world.now, name, rate, most)
    world.commit()


def rules(*names: str, cost: int = 1) -> JobRules:
    return JobRules(limiters=names, cost=cost)


def leases(world: World, queue: str = "q", most: int = 100) -> list[tuple[int, int]]:
    """Opens what may go on, as the timers do before and after, and leases."""
    while world.shard.limiters.open_due(world.now, limits.SLICE_ITEMS):
        pass
    leased = leases_of(world.lease(most, queue=queue))
    while world.shard.limiters.open_due(world.now, limits.SLICE_ITEMS):
        pass
    return leased


def lot(world: World, count: int, *names: str, queue: str = "q", cost: int = 1) -> int:
    """Plain jobs that pass these limiters; returns the first id."""
    options = JobOptions(rules=rules(*names, cost=cost))
    return world.plain(*[b"x"] * count, queue=queue, options=options).first_id


def restart(world: World) -> None:
    """The process ends after its last commit, and another one takes over."""
    world.commit()
    shard = world.recovered()
    shard.next_offset = world.shard.next_offset
    shard.committed = world.shard.committed
    shard.restart_leases(world.now)
    world.shard = shard
