"""`Window`: how many jobs a worker asks for, to keep its runners busy and no more. Pure.

A worker with slow handlers should hold what it runs and nothing else, so that jobs do not wait
here while others are idle; one with fast handlers needs as many as it finishes during a round
trip. So the window is the runners, plus what was finished in the last moments' `LOOKAHEAD`; when
the worker falls idle it returns to the runners within seconds, so that a burst of slow jobs is
shared.
"""

from __future__ import annotations

# Seconds of work to have at hand: several round trips, far below what a person would notice.
LOOKAHEAD = 0.1
# Seconds between measurements.
INTERVAL = 0.05
# A measurement below the last estimate brings it down by this share only: rates are noisy.
DECAY = 0.8
# The protocol's limit.
WINDOW_MAX = 100_000
# What a handler that returns at once may have at hand; more buys nothing.
ADAPTIVE_MAX = 10_000
# A change smaller than this share is not worth a frame.
STEP = 0.25


class Window:
    """The window of one worker. A fixed one never changes."""

    def __init__(self, now: float, *, runners: int, fixed: int | None = None) -> None:
        self._runners = runners
        self._is_fixed = fixed is not None
        self._measured_at = now
        self._finished = 0
        self._rate = 0.0
        self.size = min(fixed if fixed is not None else runners, WINDOW_MAX)

    @property
    def is_at_rest(self) -> bool:
        """Nothing to measure until jobs are finished again."""
        return self._is_fixed or (self._rate == 0.0 and self.size == self._runners)

    def measure(self, now: float, finished: int) -> bool:
        """Takes in how many jobs were finished since the last measurement; true if `size`
        changed.
        """
        elapsed = now - self._measured_at
        if self._is_fixed or elapsed < INTERVAL:
            return False
        self._measured_at = now
        rate = (finished - self._finished) / elapsed
        self._finished = finished
        self._rate = max(rate, self._rate * DECAY)
        if self._rate < 1.0:
            self._rate = 0.0
        wanted = min(self._runners + int(self._rate * LOOKAHEAD), max(self._runners, ADAPTIVE_MAX))
        if abs(wanted - self.size) <= self.size * STEP and wanted != self._runners:
            return False
        changed = wanted != self.size
        self.size = wanted
        return changed
