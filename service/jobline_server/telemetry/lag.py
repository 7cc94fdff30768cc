"""The lag of the loop: a histogram, and the longest lag of the last minute.

The minute is kept as the longest lag of each five seconds, so the memory does not depend on how
often the loop is measured.
"""

from __future__ import annotations

from collections import deque

from jobline_server.telemetry.calls import Histogram

MINUTE_SECONDS = 60.0
PART_SECONDS = 5.0


class LoopLag:
    """Records by how many seconds the loop was late."""

    __slots__ = ("_parts", "histogram")

    def __init__(self) -> None:
        self.histogram = Histogram()
        self._parts: deque[tuple[float, float]] = deque()

    def add(self, at_seconds: float, late_seconds: float) -> None:
        """Adds a measurement; `at_seconds` never goes back."""
        self.histogram.add(late_seconds)
        parts = self._parts
        if parts and at_seconds < parts[-1][0] + PART_SECONDS:
            began, longest = parts[-1]
            parts[-1] = began, max(longest, late_seconds)
            return
        parts.append((at_seconds, late_seconds))
        while parts[0][0] < at_seconds - MINUTE_SECONDS:
            parts.popleft()

    def longest(self) -> float:
        """Returns the longest lag of the minute before the last measurement."""
        return max([longest for _, longest in self._parts], default=0.0)
