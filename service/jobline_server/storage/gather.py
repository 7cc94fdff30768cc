"""How long a commit gathers: just as long as it pays.

Every call that waits for a commit costs the loop little and the commit costs a thread hop and an fsync, so
the more calls share one the better, until waiting costs more than it saves. The measure is how many callers
shared the last commits: a single caller is never kept waiting, sixty-four in flight are waited for, but only
for a bounded time.
"""

from __future__ import annotations

# The longest a commit waits for more callers, and the longest that what nobody waits for stays in memory.
WAIT_MS_MAX = 2
BUFFERED_MS_MAX = 5
# How much the newest commit counts in the running mean.
NEWEST_SHARE = 0.25


class Gather:
    """Decides when the next commit goes. Times are monotonic milliseconds, fractions included."""

    def __init__(self) -> None:
        self._expected = 1.0
        self._waiting = 0
        self._first_caller_ms: float | None = None
        self._first_ms: float | None = None

    def note(self, now_ms: float) -> None:
        """Something is to be written."""
        if self._first_ms is None:
            self._first_ms = now_ms

    def note_caller(self, now_ms: float) -> None:
        """Something is to be written, and somebody waits for it."""
        self.note(now_ms)
        self._waiting += 1
        if self._first_caller_ms is None:
            self._first_caller_ms = now_ms

    def due_ms(self) -> float | None:
        """When to go: a moment that may have passed; None while there is nothing to write."""
        if self._first_ms is None:
            return None
        if self._first_caller_ms is None:
            return self._first_ms + BUFFERED_MS_MAX
        if self._waiting >= round(self._expected):
            return self._first_caller_ms
        return self._first_caller_ms + WAIT_MS_MAX

    def go(self) -> int:
        """The commit goes with what has gathered; returns how many callers wait for it."""
        waiting = self._waiting
        if waiting:
            self._expected += (waiting - self._expected) * NEWEST_SHARE
        self._waiting = 0
        self._first_caller_ms = self._first_ms = None
        return waiting
