"""The engine alone with sticky jobs: what is reserved for one session costs the others nothing."""

from __future__ import annotations

from statistics import median
from time import perf_counter

from benchmarks.engine import BATCH, BATCHES, NOW, Figure, World
from jobline_server.engine import limits
from jobline_server.engine.commands import Push
from jobline_server.engine.decide.lease import decide_lease
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.decide.timers import open_gates
from jobline_server.engine.holder import Holder
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.rules import JobRules
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import JobOptions, Now

STICKY = JobOptions(rules=JobRules(sticky=True))
PULLS = 2_000


def sticky() -> list[Figure]:
    """A hundred thousand groups whose next jobs are reserved for one session."""
    world = _world(BATCHES)
    ratio = _empty_pull_seconds(world) / _empty_pull_seconds(_world(1))
    for _ in range(BATCHES):
        world.ack(world.lease())
    _push(world, BATCHES)
    return [
        Figure("100,000 sticky groups: lease", world.rate("lease"), 100e3, "jobs/s"),
        Figure("pull of others, 100,000 reserved", ratio, 1.5, "times"),
        Figure("reserved jobs given away", _given_away(world), 50e3, "jobs/s"),
    ]


def _world(batches: int) -> World:
    """The session has had a job of each group, and another one is reserved for it."""
    world = World()
    _push(world, batches)
    for _ in range(batches):
        world.ack(world.lease())
    world._seconds.clear()  # noqa: SLF001  # what comes now is measured
    _push(world, batches)
    return world


def _push(world: World, batches: int) -> None:
    for batch in range(batches):
        ties = [Ties(f"group-{batch * BATCH + number}") for number in range(BATCH)]
        rows = JobColumns([b"p" * 100] * BATCH, [STICKY] * BATCH, ties=ties)
        decide_push(world.shard, NOW, Push("q", STICKY, rows))
        world.commit()


def _empty_pull_seconds(world: World) -> float:
    """What a pull of another session takes, which gets nothing."""
    other, queue = Holder("w2", "s2"), world.shard.queues["q"]
    seconds: list[float] = []
    for _ in range(PULLS):
        started = perf_counter()
        leased = decide_lease(
            world.shard,
            NOW,
            queue,
            other,
            max_jobs=BATCH,
            max_bytes=1 << 30,
            names=None,
            lease_ms=0,
        )
        seconds.append(perf_counter() - started)
        assert not leased.count(), leased.count()
    return median(seconds)


def _given_away(world: World) -> float:
    """Jobs a second of the median slice."""
    open_gates(world.shard, NOW)
    later = Now(NOW.wall_ms + limits.STICKY_MS, NOW.mono_ms + limits.STICKY_MS)
    seconds: list[float] = []
    while world.shard.sticky.first_ms(later.mono_ms) is not None:
        started = perf_counter()
        if open_gates(world.shard, later):
            seconds.append(perf_counter() - started)
    return limits.STICKY_SLICE_JOBS / median(seconds)
