"""Figures: what was measured, the target it is held against, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """What a figure counts."""

    JOBS = "jobs/s"
    CALLS = "calls/s"
    TIME = "s"
    BYTES = "bytes a job"
    MEMORY = "bytes"
    SHARE = "%"


@dataclass(frozen=True, slots=True)
class Target:
    """A bound on a figure: at least, or at most."""

    bound: float
    at_least: bool = True

    def met(self, value: float) -> bool:
        """Whether a figure is on the right side."""
        return value >= self.bound if self.at_least else value <= self.bound


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number. `ratio` is the number beside its floor, in words; `ratio_met` the
    verdict on it where there is a target for it. `note` says what a reader must know.
    """

    number: str
    what: str
    value: float
    unit: Unit
    target: Target | None = None
    ratio: str = ""
    ratio_met: bool | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether all its targets are met; None without one."""
        verdicts = [self.target.met(self.value)] if self.target else []
        if self.ratio_met is not None:
            verdicts.append(self.ratio_met)
        return all(verdicts) if verdicts else None


def at_least(bound: float) -> Target:
    """More is better."""
    return Target(bound)


def at_most(bound: float) -> Target:
    """Less is better."""
    return Target(bound, at_least=False)


def beside_floor(value: float, empty: float) -> str:
    """How much of an empty handler's rate, with the same bytes, is left."""
    return f"{value / empty:.0%} of an empty handler"


def shown(value: float, unit: Unit) -> str:
    """A number as people read it."""
    if unit is Unit.TIME:
        return _time(value)
    if unit is Unit.MEMORY:
        return f"{value / (1 << 20):,.0f} MiB"
    if unit is Unit.SHARE:
        return f"{value:.2g} %" if value < 1 else f"{value:.1f} %"
    if unit is Unit.BYTES:
        return f"{value:,.0f} {unit}"
    return f"{_three_digits(value)} {unit}"


def shown_target(target: Target | None, unit: Unit) -> str:
    """A bound as people read it."""
    if target is None:
        return ""
    return f"{'≥' if target.at_least else '≤'} {shown(target.bound, unit)}"


def _three_digits(value: float) -> str:
    """Rounded: no more digits than a repeat would confirm."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:.2f} million"
    digits = len(str(int(value)))
    step = 10 ** max(0, digits - 3)
    return f"{round(value / step) * step:,}"


def _time(seconds: float) -> str:
    if seconds < 0.01:
        return f"{seconds * 1e6:,.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:,.1f} ms"
    return f"{seconds:.2f} s"
