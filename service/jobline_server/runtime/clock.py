"""The clocks: the only place that reads them.

The process may stand still at any moment: stopped, its machine suspended or starved, its loop busy.
What workers sent meanwhile lies unread, so that time must not count against their leases. No
correction afterwards can see to that, as somebody always reads the clock before it. Instead the
monotonic time of the engine only goes on while the loop does: from one beat of the loop to the next
it advances by `STEP_MS_MAX` at most, whoever reads it and whenever. Of a standstill of any length a
lease loses no more than that. While there is no lease and no stream, the loop may beat less often.
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
    """Both times. Monotonic time goes on while `loop_went_on` is called."""

    def now(self) -> Now:
        """Both times in milliseconds."""

    def wall_at(self, mono_ms: int) -> int:
        """The wall time of a moment of the monotonic clock: the same whenever it is asked, unless
        one of the clocks was set or stood still.
        """

    def loop_went_on(self, *, free: bool = False) -> None:
        """The loop goes on. `free`: no lease and no stream depends on the time until the next beat,
        so that it goes as the machine's does.
        """


class SystemClock:
    """The machine's clocks."""

    def __init__(self) -> None:
        self._beat_ns = time.monotonic_ns()
        """What the machine's clock said at the last beat, and `_beat_at_ns`: the engine's time."""
        self._beat_at_ns = self._beat_ns
        self._step_ns = _STEP_NS
        self._apart_ms = 0

    def now(self) -> Now:
        """Wall time, and monotonic time without what was lost standing still."""
        # Each push reads it twice: this is `_mono_ns` without its call.
        passed_ns = min(time.monotonic_ns() - self._beat_ns, self._step_ns)
        return Now(time.time_ns() // 1_000_000, (self._beat_at_ns + passed_ns) // 1_000_000)

    def wall_at(self, mono_ms: int) -> int:
        """How far the clocks are apart is kept until it is more than their reading in milliseconds
        that differs.
        """
        now = self.now()
        apart_ms = now.wall_ms - now.mono_ms
        if abs(apart_ms - self._apart_ms) > READING_MS:
            self._apart_ms = apart_ms
        return mono_ms + self._apart_ms

    def loop_went_on(self, *, free: bool = False) -> None:
        """What went by since the last beat beyond a step never counts; all does if it was free."""
        self._beat_at_ns, self._beat_ns = self._mono_ns(), time.monotonic_ns()
        self._step_ns = _FREE_NS if free else _STEP_NS

    def _mono_ns(self) -> int:
        passed_ns = time.monotonic_ns() - self._beat_ns
        return self._beat_at_ns + min(passed_ns, self._step_ns)


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

    def loop_went_on(self, *, free: bool = False) -> None:
        """Time goes on by hand alone."""

    def advance(self, milliseconds: int) -> None:
        """Moves both clocks."""
        self.wall_ms += milliseconds
        self.mono_ms += milliseconds
