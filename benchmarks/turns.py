"""What a server costs beside one that has less of everything: both are measured in turns.

A machine is half as fast in one minute as in another, so rates that were measured one after another
say more of it than of the servers. The one that is not measured stands still meanwhile. What is
left is the place that each has in memory: two that are alike differ by a tenth.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import median

from benchmarks import machine
from benchmarks.bench import Bench, Running
from benchmarks.figures import Figure, Unit, shown

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
    count = 1 if bench.quick else PAIRS
    # The first one warms up.
    _, *pairs = [await _pair(smallest, larger, number) for number in range(1 + count)]
    small, large = (median(rates) for rates in zip(*pairs, strict=True))
    share = median([ours / its for its, ours in pairs])
    beside = f"{share:.0%} of the smallest, {shown(small, Unit.JOBS)} in turns"
    _add(bench, what, large, beside, share)


async def _pair(smallest: Load, larger: Load, number: int) -> tuple[float, float]:
    """The rates of both, in the order of an even or odd number."""
    if number % 2:
        return await _alone(smallest, larger), await _alone(larger, smallest)
    large = await _alone(larger, smallest)
    return await _alone(smallest, larger), large


async def _alone(load: Load, other: Load) -> float:
    with other.server.process.paused():
        return await load.measure()


def _add(bench: Bench, what: str, rate: float, beside: str = "", share: float = 1.0) -> None:
    bench.add(
        Figure(
            "P11",
            f"push + pull + ack, {A_CALL:,} a call, {what}",
            rate,
            Unit.JOBS,
            ratio=f"{beside} (target ≥ {1 - SLOWER_MAX:.0%})" if beside else "",
            ratio_met=share >= 1 - SLOWER_MAX if beside else None,
        )
    )
