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
class UniqueKeysExtended:
    """Unique keys of one queue, which these jobs hold or held, are held until other times."""

    at_ms: int
    queue: str
    unique_keys: list[str]
    ids: list[int]
    until_ms: list[int]
    aged_ms: int


@dataclass(slots=True)
class UniqueKeyForgotten:
    """An operator took a unique key from the job that held it, or ended its throttle."""

    at_ms: int
    queue: str
    unique_key: str
    aged_ms: int


UniqueKeyFact = JobsReplaced | UniqueKeysExtended | UniqueKeyForgotten
