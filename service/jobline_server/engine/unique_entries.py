"""The facts of unique keys; a part of `entries`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class JobsReplaced:
    """Waiting jobs of one queue lost their place to newer ones with their unique keys."""

    at_ms: int
    queue: str
    ids: list[int]


@dataclass(slots=True)
class UniqueKeyExtended:
    """A unique key, which this job holds or held, is held until another time."""

    at_ms: int
    queue: str
    unique_key: str
    id: int
    until_ms: int
    aged_ms: int


@dataclass(slots=True)
class UniqueKeyForgotten:
    """An operator took a unique key from the job that held it, or ended its throttle."""

    at_ms: int
    queue: str
    unique_key: str
    aged_ms: int


UniqueKeyFact = JobsReplaced | UniqueKeyExtended | UniqueKeyForgotten
