"""The engine alone with jobs of groups: many, one that is deep, and tenants of a fair queue."""

from __future__ import annotations

from statistics import median
from time import perf_counter

from benchmarks.engine import BATCH, BATCHES, NOW, Figure, World, size_of
from jobline_server.engine.commands import Push
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.queues import decide_update_queue
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, QueueSettings

# As deep as a group may be, beside a shallow one.
DEEP, SHALLOW = BATCH * BATCHES, BATCH
STEPS = 500


def push_members(world: World, groups: list[str]) -> None:
    """Pushes a job per group in one call."""
    payloads = [b"p" * 100] * len(groups)
    ties = [Ties(group) for group in groups]
    rows = JobColumns(payloads, [DEFAULT_OPTIONS] * len(groups), ties=ties)
    world.timed("push", lambda: decide_push(world.shard, NOW, Push("q", DEFAULT_OPTIONS, rows)))
    world.commit()


def push_new_groups(world: World) -> None:
    """Pushes a thousand jobs, each of a new group."""
    first = world.shard.next_sequence
    push_members(world, [f"group-{first + number}" for number in range(BATCH)])


def groups() -> list[Figure]:
    """A hundred thousand groups, one group a hundred thousand deep, and tenants."""
    world = World()
    for _ in range(BATCHES):
        push_new_groups(world)
    for _ in range(BATCHES):
        world.ack(world.lease())
    deep, shallow = _step_seconds(DEEP), _step_seconds(SHALLOW)
    return [
        Figure("100,000 groups: push", world.rate("push"), 150e3, "jobs/s"),
        Figure("100,000 groups: lease", world.rate("lease"), 500e3, "jobs/s"),
        Figure("100,000 groups: ack", world.rate("ack"), 200e3, "jobs/s"),
        Figure("one group, 100,000 deep, to 1,000", deep / shallow, 1.5, "times"),
        Figure("memory of a job and its group", size_of(push_new_groups), 1_000, "bytes"),
        *tenants(),
    ]


def tenants() -> list[Figure]:
    """A fair queue with a hundred thousand tenants, beside one with a thousand."""
    many, few = _tenants_world(BATCHES), _tenants_world(1)
    return [
        Figure("100,000 tenants: lease", many.rate("lease"), 30e3, "jobs/s"),
        Figure("100,000 tenants: ack", many.rate("ack"), 100e3, "jobs/s"),
        Figure(
            "lease with 100,000 tenants, to 1,000",
            many.seconds("lease") / few.seconds("lease"),
            2,
            "times",
        ),
        Figure("memory of a job and its tenant", size_of(_push_new_tenants), 3_000, "bytes"),
    ]


def _tenants_world(batches: int) -> World:
    """Returns a world in which tenants have a job each, of which a few are done."""
    world = World()
    _make_fair(world)
    for _ in range(batches):
        push_new_groups(world)
    for _ in range(2):
        world.ack(world.lease())
    return world


def _push_new_tenants(world: World) -> None:
    _make_fair(world)
    push_new_groups(world)


def _make_fair(world: World) -> None:
    decide_update_queue(world.shard, NOW, "q", QueueSettings(fair=True), None)


def _step_seconds(depth: int) -> float:
    """What a lease and an ack of the next job take, in a group of this depth."""
    world = World()
    for _ in range(depth // BATCH):
        push_members(world, ["g"] * BATCH)
    steps: list[float] = []
    for _ in range(STEPS):
        started = perf_counter()
        world.ack(world.lease())
        steps.append(perf_counter() - started)
    return median(steps)
