"""Places: the queues and states in which jobs have ended since retention looked there last.

Retention asks the finished file about a place when something may be due there: when that moment has
come, or when jobs ended there. Which places those are is noted here as ended jobs are written, so
that nobody walks over all queues to find out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jobline_server.engine.values import ENDED_STATES, JobState
from jobline_server.storage.ended_store import EndedOp, PutEnded

Place = tuple[str, JobState]


@dataclass(slots=True)
class Ended:
    """What ended in one place: when the first of those without an age of their own did, None if
    that is for the file to say; and whether any has a count of its own.
    """

    first_ms: int | None
    is_counted: bool


class RetentionHints:
    """What ended where."""

    def __init__(self) -> None:
        self._ended: dict[Place, Ended] = {}

    def note(self, ops: Iterable[EndedOp]) -> None:
        """Jobs are written to the finished file."""
        ended = self._ended
        for op in ops:
            if isinstance(op, PutEnded):
                row = op.row
                place = row.queue, JobState(row.state)
                known = ended.get(place)
                if known is None:
                    ended[place] = Ended(row.ended_ms, row.keep_count is not None)
                elif row.keep_count is not None:
                    known.is_counted = True

    def note_queue(self, queue: str, states: Iterable[JobState] = ENDED_STATES) -> None:
        """A queue keeps its jobs in these states for another time or in another number, or is not
        known yet: the file says when something is due.
        """
        for state in states:
            known = self._ended.setdefault((queue, state), Ended(None, False))
            known.first_ms = None

    def take(self) -> dict[Place, Ended]:
        """Hands over what was noted."""
        ended, self._ended = self._ended, {}
        return ended
