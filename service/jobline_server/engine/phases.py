"""Phases: the steps of a job, as far as they are finished.

The names stand in the options of the job. A phase that is finished never runs again: the job keeps
when it ran and what it returned, and the next attempt starts behind it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class FinishedPhase(NamedTuple):
    """A phase that is finished. It began with its attempt, or when the one before ended."""

    started_ms: int
    ended_ms: int
    attempt: int
    result: bytes


def overall_progress(finished: int, percent: float, count: int) -> float:
    """Returns the progress of a job, 0 … 100, that is at `percent` of the phase behind the finished
    ones, of `count` phases in all.
    """
    return min((finished + percent / 100) / count * 100, 100.0)


def progress_within(finished: int, progress: float, count: int) -> float:
    """Returns the progress of the phase behind the finished ones, from that of the job."""
    return round(min(max(progress / 100 * count - finished, 0.0), 1.0) * 100, 6)


def results_bytes(phases: Iterable[FinishedPhase]) -> int:
    """Returns the bytes of the results of phases."""
    return sum([len(phase.result) for phase in phases])
