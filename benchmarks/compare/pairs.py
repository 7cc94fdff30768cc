"""One row on both sides in turns: AB BA AB, each side with a server that lives meanwhile.

What fails is named with its side: a commit that cannot do what a row asks is no slower for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TypeVar

from benchmarks.bench import CANNOT_MEASURE, Bench
from benchmarks.compare.rows import Row
from benchmarks.compare.verdict import Comparison, Sample, Verdict, compare

PAIRS_MIN = 5
ROW_SECONDS_MAX = 300.0

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Side:
    """A tree and its bench."""

    name: str
    bench: Bench


class NotCompared(Exception):
    """A row that one side could not be measured for."""

    def __init__(self, side: Side, why: str) -> None:
        super().__init__(f"{side.name}: {why}")
        self.side = side


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row's comparison, and the one before it where a first look said slower or faster."""

    row: Row
    comparison: Comparison
    first: Comparison | None = None

    @property
    def verdict(self) -> Verdict:
        """Slower or faster only if it was so both times."""
        if self.first is not None and self.first.verdict is not self.comparison.verdict:
            return Verdict.SAME
        return self.comparison.verdict


async def compare_row(row: Row, here: Side, there: Side, pairs: int) -> Outcome:
    """Compares, and again with fresh servers if there seems to be a difference."""
    first = await _compare_once(row, here, there, pairs)
    if first.verdict is Verdict.SAME:
        return Outcome(row, first)
    return Outcome(row, await _compare_once(row, here, there, pairs), first)


async def _compare_once(row: Row, here: Side, there: Side, pairs: int) -> Comparison:
    taken: tuple[list[Sample], list[Sample]] = ([], [])
    async with asyncio.timeout(ROW_SECONDS_MAX), AsyncExitStack() as stack:
        sides = (here, there)
        measures = [
            await _at(side, stack.enter_async_context(row.open(side.bench))) for side in sides
        ]
        # The first pair warms up, and is not counted.
        for number in range(pairs + 1):
            if row.is_together:
                both = [_at(sides[side], measures[side]()) for side in (0, 1)]
                samples = list(await asyncio.gather(*both))
            else:
                order = (0, 1) if number % 2 else (1, 0)
                found = {side: await _at(sides[side], measures[side]()) for side in order}
                samples = [found[0], found[1]]
            if number:
                taken[0].append(samples[0])
                taken[1].append(samples[1])
    return compare(row.unit, *taken)


async def _at(side: Side, work: Awaitable[Result]) -> Result:
    try:
        return await work
    except CANNOT_MEASURE as error:
        raise NotCompared(side, str(error)) from error
