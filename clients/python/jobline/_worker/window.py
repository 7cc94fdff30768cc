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
        self._wanted = min(fixed if fixed is not None else runners, WINDOW_MAX)
        self._held_back = 0
        self._has_changed = False

    @property
    def size(self) -> int:
        """How many jobs are asked for."""
        return max(0, self._wanted - self._held_back)

    @property
    def is_at_rest(self) -> bool:
        """Nothing to measure until jobs are finished again."""
        return self._is_fixed or (self._rate == 0.0 and self._wanted == self._runners)

    def hold_back(self, jobs: int) -> None:
        """Asks for so many jobs less than there are runners for: some cannot run one yet. The next
        measurement says that `size` changed.
        """
        self._held_back, self._has_changed = jobs, True

    def measure(self, now: float, finished: int) -> bool:
        """Takes in how many jobs were finished since the last measurement; true if `size`
        changed.
        """
        if self._has_changed:
            self._has_changed = False
            return True
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
        if abs(wanted - self._wanted) <= self._wanted * STEP and wanted != self._runners:
            return False
        changed = wanted != self._wanted
        self._wanted = wanted
        return changed
