"""What a server costs beside one that has less of everything: both are measured in turns.

A machine is half as fast in one minute as in another, so rates that were measured one after another
say more of it than of the servers. The one that is not measured stands still meanwhile.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import median

from benchmarks import machine
from benchmarks.bench import Bench, Running
from benchmarks.figures import Figure, Unit

# Of all jobs that are pushed, pulled and acked in a cycle.
A_CALL = 1_000
# How much slower the larger may be than the smallest.
SLOWER_MAX = 0.20
PAIRS = 6


@dataclass(frozen=True, slots=True)
class Load:
    """A server, and how its rate is measured, in jobs a second."""

    server: Running
    measure: Callable[[], Awaitable[float]]


async def add_smallest(bench: Bench, what: str, smallest: Load) -> None:
    """Adds the figure of a server that others are measured beside."""
    machine.touch_memory()
    _add(bench, what, await bench.best(smallest.server, smallest.measure))


async def add_larger(bench: Bench, what: str, smallest: Load, larger: Load) -> None:
    """Adds the figure of a server beside the smallest."""
    machine.touch_memory()
    if bench.profile:
        _add(bench, what, await bench.best(larger.server, larger.measure))
        return
    pairs = [await _pair(smallest, larger, number) for number in range(1 + _count(bench))]
    # The first one warms up.
    del pairs[0]
    share = median([large / small for small, large in pairs])
    _add(bench, what, median([large for _, large in pairs]), share)


def _count(bench: Bench) -> int:
    return 1 if bench.quick else PAIRS


async def _pair(smallest: Load, larger: Load, number: int) -> tuple[float, float]:
    """The rates of both, in the order of an even or odd number."""
    if number % 2:
        return await _alone(smallest, larger), await _alone(larger, smallest)
    large = await _alone(larger, smallest)
    return await _alone(smallest, larger), large


async def _alone(load: Load, other: Load) -> float:
    with other.server.process.paused():
        return await load.measure()


def _add(bench: Bench, what: str, rate: float, share: float | None = None) -> None:
    bench.add(
        Figure(
            "P11",
            f"push + pull + ack, {A_CALL:,} a call, {what}",
            rate,
            Unit.JOBS,
            ratio="" if share is None else f"{share:.0%} of the smallest (target ≥ 80%)",
            ratio_met=None if share is None else share >= 1 - SLOWER_MAX,
        )
    )
