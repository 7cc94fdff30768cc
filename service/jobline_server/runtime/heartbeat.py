"""The loop's heartbeat: lets the clock go on, and measures how late the loop is.

A callback and no task: it asks for the next beat before it does anything else, so there is nothing
that could end it but `stop`.
"""

from __future__ import annotations

import asyncio
import time

from jobline_server.runtime.clock import BEAT_MS, Clock
from jobline_server.telemetry.lag import LoopLag

BEAT_SECONDS = BEAT_MS / 1_000


class Heartbeat:
    """Beats from `start` to `stop`; both may be called twice."""

    def __init__(self, clock: Clock) -> None:
        self.lag = LoopLag()
        self._clock = clock
        self._due_seconds = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """The first beat is at once."""
        if self._timer is None:
            self._due_seconds = time.monotonic()
            self._beat()

    def stop(self) -> None:
        """Time stands still from now on."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _beat(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(BEAT_SECONDS, self._beat)
        self._clock.beat()
        now_seconds = time.monotonic()
        # The loop's own time is that of its last turn, and says less than this.
        self.lag.add(now_seconds, max(now_seconds - self._due_seconds, 0.0))
        self._due_seconds = now_seconds + BEAT_SECONDS
