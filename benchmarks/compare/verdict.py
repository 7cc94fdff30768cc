"""Ratios of pairs, their spread, and the verdict on them: arithmetic, and nothing is measured here.

A ratio is always a speed, this tree's over the other's: above 1 is faster, whatever the unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from statistics import median, quantiles

from benchmarks.figures import Unit

# More than this much slower, beyond the spread, is a slow-down.
SLOWER_MAX = 0.05
MORE_IS_BETTER = (Unit.JOBS, Unit.CALLS)


class Verdict(StrEnum):
    """What is said of a row."""

    FASTER = "faster"
    SAME = "same"
    SLOWER = "slower"


class Judge(StrEnum):
    """Which figure repeats best."""

    FIGURE = "figure"
    PROCESSOR = "processor"


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement of one side: its figure, and seconds of processor time per job or call."""

    figure: float
    processor: float | None = None


@dataclass(frozen=True, slots=True)
class Speed:
    """The median of the pairs' ratios, and half the distance between their quartiles."""

    median: float
    spread: float

    @classmethod
    def of(cls, ratios: Sequence[float]) -> Speed:
        """Of one pair nothing is known about the spread, so it is without limit."""
        if len(ratios) < 2:
            return cls(ratios[0], inf)
        first, _, third = quantiles(ratios, n=4, method="inclusive")
        return cls(median(ratios), (third - first) / 2)

    @property
    def verdict(self) -> Verdict:
        """Slower or faster only by more than the spread and what is let pass."""
        if self.median + self.spread < 1 - SLOWER_MAX:
            return Verdict.SLOWER
        if self.median - self.spread > 1 + SLOWER_MAX:
            return Verdict.FASTER
        return Verdict.SAME


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row: the medians of both sides, and how they compare."""

    here: float
    there: float
    figure: Speed
    processor: Speed | None = None

    @property
    def judge(self) -> Judge:
        """The figure that repeats best; the rate or time where there is no other."""
        if self.processor is None or self.figure.spread <= self.processor.spread:
            return Judge.FIGURE
        return Judge.PROCESSOR

    @property
    def verdict(self) -> Verdict:
        """That of the judge; but a rate or time that is slower beyond its own spread is slower."""
        if self.processor is None or self.figure.verdict is Verdict.SLOWER:
            return self.figure.verdict
        chosen = self.figure if self.judge is Judge.FIGURE else self.processor
        return chosen.verdict


def compare(unit: Unit, here: Sequence[Sample], there: Sequence[Sample]) -> Comparison:
    """Compares samples that were taken in pairs, in this order."""
    figures = [(a.figure, b.figure) for a, b in zip(here, there, strict=True)]
    ratios = [a / b if unit in MORE_IS_BETTER else b / a for a, b in figures]
    # Less processor time is more speed.
    spared = [
        b.processor / a.processor
        for a, b in zip(here, there, strict=True)
        if a.processor and b.processor
    ]
    return Comparison(
        here=median(a for a, _ in figures),
        there=median(b for _, b in figures),
        figure=Speed.of(ratios),
        # A figure that some pairs lack is no figure of the row.
        processor=Speed.of(spared) if len(spared) == len(ratios) else None,
    )
