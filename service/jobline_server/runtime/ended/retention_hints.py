"""Retention hints: the queues and states in which jobs have ended since retention last checked.

Retention queries the ended store about a queue and state when something may be due there: when the
time has come, or when jobs ended there. The writer notes these as it writes ended jobs, so that
retention walks over no other queues. In the same way it notes in which queues dead jobs are put
back by themselves, and when the first of them is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jobline_server.engine.values import ENDED_STATES, JobState
from jobline_server.storage.ended_store import EndedOp, PutEnded

QueueState = tuple[str, JobState]
"""The jobs of a queue that ended in one state."""


@dataclass(slots=True)
class RetentionHint:
    """When the first of the jobs without an age of their own ended, None if only the ended store
    knows; and whether any job has a count of its own.
    """

    first_ms: int | None
    is_counted: bool


class RetentionHints:
    """The hints since the last `take`."""

    def __init__(self) -> None:
        self._hints: dict[QueueState, RetentionHint] = {}
        self._retries: dict[str, int] = {}

    def note(self, ops: Iterable[EndedOp]) -> None:
        """Notes jobs that are written to the ended store."""
        hints = self._hints
        for op in ops:
            if isinstance(op, PutEnded):
                row = op.row
                queue_state = row.queue, JobState(row.state)
                known = hints.get(queue_state)
                if known is None:
                    hints[queue_state] = RetentionHint(row.ended_ms, row.keep_count is not None)
                elif row.keep_count is not None:
                    known.is_counted = True
                if row.retry_ms is not None:
                    first_ms = self._retries.get(row.queue, row.retry_ms)
                    self._retries[row.queue] = min(first_ms, row.retry_ms)

    def note_queue(self, queue: str, states: Iterable[JobState] = ENDED_STATES) -> None:
        """Notes that a queue has new settings, or that nothing is known of its jobs in these states
        yet: only the ended store knows when something is due.
        """
        for state in states:
            known = self._hints.setdefault((queue, state), RetentionHint(None, False))
            known.first_ms = None
        self._retries[queue] = 0

    @property
    def has_any(self) -> bool:
        """Returns whether `take` would return any."""
        return bool(self._hints)

    def take(self) -> dict[QueueState, RetentionHint]:
        """Removes and returns the hints."""
        hints, self._hints = self._hints, {}
        return hints

    def take_retries(self) -> dict[str, int]:
        """Removes and returns the queues in which dead jobs may be put back by themselves, and when
        the first of those that were noted is; 0: only the ended store knows.
        """
        retries, self._retries = self._retries, {}
        return retries
