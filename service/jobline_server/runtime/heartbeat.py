"""The heartbeat of the loop: advances the clock, and measures how late the loop is.

It is a callback, not a task: it schedules the next heartbeat first, so only `stop` ends it.

An idle server costs most by being woken. The heartbeat therefore rests while no lease and no stream
counts on it: it comes less often, and a reader of the time wakes it first (`Core.now`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from jobline_server.runtime.clock import HEARTBEAT_MS, Clock
from jobline_server.runtime.waiting import tick_after
from jobline_server.telemetry.lag import LoopLag

HEARTBEAT_SECONDS = HEARTBEAT_MS / 1_000
# At rest: still often enough to see how late the loop is when it only reads.
REST_SECONDS = 0.5


class Heartbeat:
    """Beats from `start` to `stop`; both may be called twice. `may_rest`: no lease and no stream
    counts on its beats.
    """

    def __init__(self, clock: Clock, may_rest: Callable[[], bool]) -> None:
        self.lag = LoopLag()
        self.resting = False
        self.on_heartbeat: Callable[[], None] | None = None
        """Called at each beat, after how late it is was measured."""
        self._may_rest = may_rest
        self._clock = clock
        self._due_seconds = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Starts with a heartbeat at once."""
        if self._timer is None:
            self._due_seconds = time.monotonic()
            self._beat()

    def stop(self) -> None:
        """Stops it."""
        self.resting = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def wake(self) -> None:
        """Ends the rest with a heartbeat at once."""
        if self._timer is not None:
            self._timer.cancel()
            self._go_on(rest=False)

    def _beat(self) -> None:
        self._go_on(rest=self._may_rest())
        if self.on_heartbeat is not None:
            self.on_heartbeat()

    def _go_on(self, *, rest: bool) -> None:
        loop, pause = asyncio.get_running_loop(), HEARTBEAT_SECONDS
        if rest:
            pause = tick_after(loop.time(), REST_SECONDS) - loop.time()
        self._timer = loop.call_later(pause, self._beat)
        self._clock.loop_went_on(free=rest)
        self.resting = rest
        now_seconds = time.monotonic()
        # The loop's own time is that of its last turn, and says less than this.
        self.lag.add(now_seconds, max(now_seconds - self._due_seconds, 0.0))
        self._due_seconds = now_seconds + pause
