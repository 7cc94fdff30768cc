"""The clocks: the only place that reads them.

The process may stand still at any moment: stopped, suspended with its machine, starved, or its loop
busy. Frames of workers are unread meanwhile, so that time must not count against their leases. The
engine's monotonic time therefore advances only while the loop does: by at most `STEP_MS_MAX` from
one heartbeat of the loop to the next, whoever reads it. A standstill of any length costs a lease no
more than that. Without a lease or a stream, the heartbeats may be further apart.
"""

from __future__ import annotations

import time
from typing import Protocol

from jobline_server.engine.values import Now

# The loop beats this often while somebody's time runs (`runtime.heartbeat`).
HEARTBEAT_MS = 50
# How far monotonic time advances from one beat to the next at most: a tenth of the shortest lease.
# A loop whose every step took longer would let leases last longer; it is too busy to hear workers.
STEP_MS_MAX = 100
_STEP_NS = STEP_MS_MAX * 1_000_000
_FREE_NS = 1 << 63
# Two clocks that are read one after the other, each cut to milliseconds, seem to move by so much.
READING_MS = 1


class Clock(Protocol):
    """Both times. Monotonic time advances while `loop_went_on` is called. `moves`: by itself, and
    not only by hand.
    """

    moves: bool

    def now(self) -> Now:
        """Returns both times in milliseconds."""

    def wall_at(self, mono_ms: int) -> int:
        """Returns the wall time of a moment of the monotonic clock: the same at each call, unless a
        clock was set or the process stood still.
        """

    def loop_went_on(self, *, free: bool = False) -> None:
        """Counts a heartbeat of the loop. `free`: no lease and no stream depends on the time until
        the next one, so it advances as the machine's does.
        """


class SystemClock:
    """The clocks of the machine."""

    moves = True

    def __init__(self) -> None:
        self._beat_ns = time.monotonic_ns()
        """What the machine's clock said at the last beat, and `_beat_at_ns`: the engine's time."""
        self._beat_at_ns = self._beat_ns
        self._step_ns = _STEP_NS
        self._apart_ms = 0

    def now(self) -> Now:
        """Returns wall time, and monotonic time without standstills."""
        # Each push reads it twice: this is `_mono_ns` without its call.
        passed_ns = min(time.monotonic_ns() - self._beat_ns, self._step_ns)
        return Now(time.time_ns() // 1_000_000, (self._beat_at_ns + passed_ns) // 1_000_000)

    def wall_at(self, mono_ms: int) -> int:
        """Returns `mono_ms` plus the difference of the clocks, which is kept until it changes by
        more than an error of reading.
        """
        now = self.now()
        apart_ms = now.wall_ms - now.mono_ms
        if abs(apart_ms - self._apart_ms) > READING_MS:
            self._apart_ms = apart_ms
        return mono_ms + self._apart_ms

    def loop_went_on(self, *, free: bool = False) -> None:
        """Counts the time since the last heartbeat, at most one step, or all of it if it was
        free.
        """
        self._beat_at_ns, self._beat_ns = self._mono_ns(), time.monotonic_ns()
        self._step_ns = _FREE_NS if free else _STEP_NS

    def _mono_ns(self) -> int:
        passed_ns = time.monotonic_ns() - self._beat_ns
        return self._beat_at_ns + min(passed_ns, self._step_ns)


class ManualClock:
    """Clocks moved by hand, for tests."""

    moves = False

    def __init__(self, wall_ms: int = 1_790_000_000_000, mono_ms: int = 1_000_000) -> None:
        self.wall_ms = wall_ms
        self.mono_ms = mono_ms

    def now(self) -> Now:
        """Returns the times that the clocks were set to."""
        return Now(self.wall_ms, self.mono_ms)

    def wall_at(self, mono_ms: int) -> int:
        """Returns the wall time by the present difference of the clocks."""
        return mono_ms + self.wall_ms - self.mono_ms

    def loop_went_on(self, *, free: bool = False) -> None:
        """Does nothing: time is moved by hand alone."""

    def advance(self, milliseconds: int) -> None:
        """Moves both clocks."""
        self.wall_ms += milliseconds
        self.mono_ms += milliseconds
