"""Notices: what happened and changed nothing. They are for watchers alone: nothing applies them,
and the journal does not have them.
"""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine.values import JobState, PushOutcome


@dataclass(slots=True)
class DuplicatesFound:
    """A push returned jobs that were there instead of storing others, in columns: their ids and
    their states (None: it has ended), the names of the jobs that were pushed, and why.
    """

    at_ms: int
    queue: str
    ids: list[int]
    states: list[JobState | None]
    names: list[str]
    outcomes: list[PushOutcome]
