"""The clocks: the only place that reads them.

Monotonic time does not count while the process itself stood still (stopped, suspended, a stalled
loop): heartbeats that arrived meanwhile are read before any lease ends.
"""

from __future__ import annotations

import time
from typing import Protocol

from jobline_server.engine.values import Now

# The timers are looked at this often, even if nothing is due.
BEAT_MS = 250
# A beat that is later than this was not late by load: the process stood still.
STOOD_STILL_MS = 1_000
# Two clocks that are read one after the other, each cut to milliseconds, seem to move by so much.
READING_MS = 1


class Clock(Protocol):
    """Both times, and a beat that tells how late the loop is."""

    def now(self) -> Now:
        """Both times in milliseconds."""

    def wall_at(self, mono_ms: int) -> int:
        """The wall time of a moment of the monotonic clock: the same whenever it is asked, unless
        one of the clocks was set or stood still.
        """

    def beat(self, expected_ms: float) -> float:
        """Called after a pause that should have taken at most `expected_ms`; returns by how many
        milliseconds it took longer."""


class SystemClock:
    """The machine's clocks."""

    def __init__(self) -> None:
        self._lost_ms = 0
        self._apart_ms = 0
        self._last_beat_ms = time.monotonic() * 1_000

    def now(self) -> Now:
        """Wall time, and monotonic time without what was lost standing still."""
        return Now(time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000 - self._lost_ms)

    def wall_at(self, mono_ms: int) -> int:
        """How far the clocks are apart is kept until it is more than their reading in milliseconds
        that differs.
        """
        now = self.now()
        apart_ms = now.wall_ms - now.mono_ms
        if abs(apart_ms - self._apart_ms) > READING_MS:
            self._apart_ms = apart_ms
        return mono_ms + self._apart_ms

    def beat(self, expected_ms: float) -> float:
        """Takes time that the process stood still out of the monotonic clock."""
        now_ms = time.monotonic() * 1_000
        late_ms = now_ms - self._last_beat_ms - expected_ms
        self._last_beat_ms = now_ms
        if late_ms > STOOD_STILL_MS:
            self._lost_ms += round(late_ms)
        return max(late_ms, 0.0)


class ManualClock:
    """Clocks driven by hand, for tests."""

    def __init__(self, wall_ms: int = 1_790_000_000_000, mono_ms: int = 1_000_000) -> None:
        self.wall_ms = wall_ms
        self.mono_ms = mono_ms

    def now(self) -> Now:
        """What the clocks were set to."""
        return Now(self.wall_ms, self.mono_ms)

    def wall_at(self, mono_ms: int) -> int:
        """As the clocks stand."""
        return mono_ms + self.wall_ms - self.mono_ms

    def beat(self, expected_ms: float) -> float:
        """Never late."""
        return 0.0

    def advance(self, milliseconds: int) -> None:
        """Moves both clocks."""
        self.wall_ms += milliseconds
        self.mono_ms += milliseconds
