"""The machine's monotonic clock in the hands of a test."""

from __future__ import annotations

STANDSTILL_MS = 60_000


class Machine:
    """It moves by hand, and jumps at the reading that a test chooses, as if the process stood still
    there.
    """

    def __init__(self) -> None:
        self.ms = 100_000
        self.readings = 0
        self.stands_still_at = -1

    def monotonic_ns(self) -> int:
        if self.readings == self.stands_still_at:
            self.ms += STANDSTILL_MS
        self.readings += 1
        return self.ms * 1_000_000
