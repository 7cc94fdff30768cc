"""The heartbeat of a worker's stream: when an empty frame is due, and when the server has been
silent for too long. Pure: the time is an argument.
"""

from __future__ import annotations

import math

# How long the server may take to answer `open`, in seconds.
OPEN_TIMEOUT = 10.0
# Seconds between frames until the server sets them.
HEARTBEAT_DEFAULT = 30.0
# Seconds that a server may set: below them frames are a storm, above them nobody notices a dead
# connection.
HEARTBEAT_MIN, HEARTBEAT_MAX = 0.05, 60.0
# A frame is due when this share of the heartbeat interval has passed in silence, or this share of
# the shortest lease that is held: each frame keeps all leases alive.
HEARTBEAT_SHARE = 0.8
LEASE_SHARE = 1 / 3
# Intervals of silence after which the server counts as gone.
SILENT_INTERVALS = 3


class Heartbeat:
    """The times of one stream; `connect` begins another one."""

    def __init__(self) -> None:
        self._interval = HEARTBEAT_DEFAULT
        # The shortest held lease, in seconds.
        self._lease_min = math.inf
        self._sent_at = 0.0
        self._silent_at = 0.0
        self._checked_at = 0.0

    def connect(self, now: float) -> None:
        """Begins a stream."""
        self._sent_at = self._checked_at = now
        self._silent_at = now + OPEN_TIMEOUT

    def opened(self, now: float, interval: float) -> None:
        """Sets the interval that the server asks for, within the bounds; 0: the default."""
        self._interval = min(max(interval or HEARTBEAT_DEFAULT, HEARTBEAT_MIN), HEARTBEAT_MAX)
        self.frame_received(now)

    def frame_received(self, now: float) -> None:
        """Restarts the silence of the server."""
        self._silent_at = now + SILENT_INTERVALS * self._interval

    def frame_sent(self, now: float) -> None:
        """Restarts the time to the next frame."""
        self._sent_at = now

    def leased(self, lease_ms: int, *, holds_others: bool) -> None:
        """Notes the length of a lease; 0 or less: unknown."""
        if not holds_others:
            self._lease_min = math.inf
        if lease_ms > 0:
            self._lease_min = min(self._lease_min, lease_ms / 1_000)

    def next_frame(self, *, holds_leases: bool) -> float:
        """Returns when a frame is due, even an empty one."""
        pause = HEARTBEAT_SHARE * self._interval
        if holds_leases:
            pause = min(pause, max(LEASE_SHARE * self._lease_min, HEARTBEAT_MIN))
        return self._sent_at + pause

    def next_silence_check(self) -> float:
        """Returns when to call `is_silent` again: twice per interval, or it could not distinguish
        silence from a stopped process.
        """
        return min(self._silent_at, self._checked_at + self._interval / 2)

    def is_silent(self, now: float) -> bool:
        """Returns whether the server was silent for three intervals.

        If this program itself did not run for a while (a stopped process, a sleeping laptop), the
        server's frames may be waiting unread, so it gets the time again.
        """
        stopped_for = now - self._checked_at - self._interval
        self._checked_at = now
        if stopped_for > 0:
            self._silent_at += stopped_for
        return now >= self._silent_at
