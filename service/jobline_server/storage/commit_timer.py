"""Decides how long a commit collects calls: as long as that saves work.

A commit costs as much processor time as ten calls (a hop to a thread and back, a write, an fsync),
so the more calls share one the better. A caller that waits for a commit sends nothing else
meanwhile: if so many calls came at the same time recently, as many may come together again. A
commit starts when they have come, or enough of them, or after a bounded wait. If no crowd came
recently, no call waits.
"""

from __future__ import annotations

# The longest a commit waits for more callers, in milliseconds: what it costs is a tenth of that.
WAIT_MS_MAX = 4
# The longest that facts which no call waits for stay in memory, in milliseconds.
BUFFERED_MS_MAX = 5
# This many callers at the same time are a crowd.
CROWD = 4
# This many are enough of any crowd: while they wait for the disk, the others are served.
ENOUGH = 32
# The weight of a commit with fewer callers than before; one with more counts in full.
FEWER_SHARE = 0.25


class CommitTimer:
    """Decides when the next commit starts. Times are monotonic milliseconds, with fractions."""

    __slots__ = ("_due_ms", "_flying", "_seen", "_waiting")

    def __init__(self) -> None:
        self._due_ms: float | None = None
        self._waiting = 0
        self._flying = 0
        self._seen = 1.0

    def note(self, now_ms: float) -> None:
        """Notes that there is something to write."""
        if self._due_ms is None:
            self._due_ms = now_ms + BUFFERED_MS_MAX

    def note_callers(self, now_ms: float, callers: int = 1) -> bool:
        """Notes that there is something to write for callers that wait. Returns whether `due_ms`
        has changed.
        """
        before, self._waiting = self._waiting, self._waiting + callers
        if before < min(round(self._seen), ENOUGH) <= self._waiting:
            self._due_ms = now_ms
            return True
        if before:
            return False
        due_ms = now_ms + (WAIT_MS_MAX if self.has_crowd else 0)
        self._due_ms = due_ms if self._due_ms is None else min(due_ms, self._due_ms)
        return True

    @property
    def has_crowd(self) -> bool:
        """Returns whether commits wait for more callers. One commit with a caller less ends no
        crowd."""
        return round(self._seen) >= CROWD

    def due_ms(self) -> float | None:
        """Returns when to start, which may have passed; None while there is nothing to write."""
        return self._due_ms

    def go(self) -> None:
        """Notes that a commit starts, with all that was noted."""
        self._flying, self._waiting = self._waiting, 0
        self._due_ms = None

    def landed(self) -> None:
        """Notes that the commit is on disk. Its callers came at the same time as those that have
        come since it started.
        """
        seen = self._flying + self._waiting
        self._flying = 0
        if seen > self._seen:
            self._seen = seen
        elif seen:
            self._seen += (seen - self._seen) * FEWER_SHARE
