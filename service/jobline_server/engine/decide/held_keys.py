"""Unique keys: what a push knows of each key while its jobs are decided one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine.commands import RefusalKind
from jobline_server.engine.values import PushOutcome

Deviation = tuple[PushOutcome | RefusalKind, int]
"""An outcome and the id of the job that it names, or why a job is refused alone, and 0."""
PushDeviations = list[tuple[int, PushOutcome | RefusalKind, int]]
"""The index of each job of a push that was not simply created, with its deviation."""


@dataclass(slots=True)
class Waiting:
    """A job that a newer one may replace: its id, the bytes of its payload, its group, and when the
    first one of its series was pushed.
    """

    id: int
    payload_bytes: int
    group: str
    first_ms: int


@dataclass(slots=True)
class HeldKey:
    """Who holds a key, 0 for nobody. `waiting` is the holder if it may be replaced, `parked` the
    job behind it; `stays` says that the holder was handed out before, `cancels` that an ACTIVE
    holder can be cancelled.
    """

    holder_id: int = 0
    waiting: Waiting | None = None
    parked: Waiting | None = None
    stays: bool = False
    cancels: bool = False
    throttled_id: int = 0


def going(key: HeldKey, deviation: Deviation | None) -> list[Waiting]:
    """Returns the jobs whose place a new one takes."""
    if deviation is None:
        return []
    of_holder = key.waiting if deviation[0] is not PushOutcome.PARKED else None
    return [waiting for waiting in (of_holder, key.parked) if waiting is not None]
