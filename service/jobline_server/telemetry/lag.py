"""How late the loop runs: the longest stall of the last minute, and of its life.

Whoever keeps the beat tells how late each one was; nothing here reads a clock.
"""

from __future__ import annotations

from collections import deque

WINDOW_MS = 60_000
SLOT_MS = 1_000


class LagMeter:
    """Lateness of beats, kept by the second for a minute."""

    __slots__ = ("_slots", "worst_ever_ms")

    def __init__(self) -> None:
        self._slots: deque[tuple[int, float]] = deque(maxlen=WINDOW_MS // SLOT_MS)
        self.worst_ever_ms = 0.0

    def add(self, mono_ms: int, late_ms: float) -> None:
        """A beat was late by so much."""
        slot = mono_ms // SLOT_MS
        self.worst_ever_ms = max(self.worst_ever_ms, late_ms)
        if self._slots and self._slots[-1][0] == slot:
            self._slots[-1] = (slot, max(self._slots[-1][1], late_ms))
        else:
            self._slots.append((slot, late_ms))

    def worst_ms(self, mono_ms: int) -> float:
        """The longest of the last minute."""
        oldest = (mono_ms - WINDOW_MS) // SLOT_MS
        return max((late for slot, late in self._slots if slot > oldest), default=0.0)
