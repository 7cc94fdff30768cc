"""How long a commit gathers: just as long as it pays.

A commit costs the processor as much as ten calls (a hop to a thread and back, a write, an fsync),
so the more calls share one the better. Whoever waits for a commit asks for nothing else meanwhile:
where so many calls were seen at the same time lately, so many may come together again. A commit
goes when they have, or enough of them, or after a bounded wait; where no crowd was seen, nobody is
kept waiting.
"""

from __future__ import annotations

# The longest a commit waits for more callers, in milliseconds: what it costs is a tenth of that.
WAIT_MS_MAX = 4
# The longest that what nobody waits for stays in memory, in milliseconds.
BUFFERED_MS_MAX = 5
# So many callers at the same time are a crowd.
CROWD = 4
# So many are enough of any crowd: while they wait for the disk, the others are served.
ENOUGH = 32
# How much a commit with fewer callers than before counts; one with more counts in full.
FEWER_SHARE = 0.25


class CommitTimer:
    """Decides when the next commit goes. Times are monotonic milliseconds, fractions included."""

    __slots__ = ("_due_ms", "_flying", "_seen", "_waiting")

    def __init__(self) -> None:
        self._due_ms: float | None = None
        self._waiting = 0
        self._flying = 0
        self._seen = 1.0

    def note(self, now_ms: float) -> None:
        """Something is to be written."""
        if self._due_ms is None:
            self._due_ms = now_ms + BUFFERED_MS_MAX

    def note_callers(self, now_ms: float, callers: int = 1) -> bool:
        """Something is to be written, and somebody waits for it. Says whether `due_ms` is another
        moment now.
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
        """Whether commits wait for more callers. One that was a caller short ends no crowd."""
        return round(self._seen) >= CROWD

    def due_ms(self) -> float | None:
        """When to go: a moment that may have passed; None while there is nothing to write."""
        return self._due_ms

    def go(self) -> None:
        """The commit goes with what has gathered."""
        self._flying, self._waiting = self._waiting, 0
        self._due_ms = None

    def landed(self) -> None:
        """It is on disk. Those who waited for it were there at the same time as those who have
        gathered since.
        """
        seen = self._flying + self._waiting
        self._flying = 0
        if seen > self._seen:
            self._seen = seen
        elif seen:
            self._seen += (seen - self._seen) * FEWER_SHARE
