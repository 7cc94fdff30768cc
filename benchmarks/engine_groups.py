"""The engine alone with jobs of groups: many groups, and one deep group."""

from __future__ import annotations

from statistics import median
from time import perf_counter

from benchmarks.engine import BATCH, BATCHES, NOW, Figure, World, size_of
from jobline_server.engine.commands import Push
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS

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
    """A hundred thousand groups, and one group a hundred thousand deep."""
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
        Figure("memory of a job and its group", size_of(push_new_groups), 1_300, "bytes"),
    ]


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
