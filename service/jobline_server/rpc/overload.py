"""Overload: refuses calls while the server cannot keep up with those that come.

Callers that do not wait for each other can send more than a server does. Without a bound each call
waits behind all before it: soon for seconds, until its caller has given up, and what is done is
done for nobody. So once calls have waited long for the loop for a while, only as many are accepted
as are done soon; the others are refused with TOO_MANY_CALLS, which costs a part of a push.

A refusal is a reply, too, and the transport shares the processor: so what counts is how many calls
are open there, from their first byte to the last one of their reply.

One long step of the loop, or a process that stood still, is no overload: calls are late then, but
those after them are not. Nor are a few callers with large calls, who wait for their replies.
"""

from __future__ import annotations

from collections.abc import Callable

# Measures how long calls have waited: in the thread that takes them, and in the loop.
from time import perf_counter

from jobline_server.telemetry.calls import CallMeters
from jobline_server.telemetry.log import logger

LOG = logger("rpc")

# A call that waited this long for the loop is late.
LATE_SECONDS = 0.025
# It is overload once calls have been late for this long, without a pause of the second length,
# while this many were open.
ALL_LATE_SECONDS = 0.2
PAUSE_SECONDS = 0.1
CALLS_MIN = 2_000
# In an overload, so many are open; beyond that, a few are served, however many are refused.
OVERLOADED_CALLS_MAX = 128
SERVED_MIN = 8
# It is over after so long without a refusal.
CALM_SECONDS = 2.0

Count = Callable[[], int]


class Overload:
    """Decides which calls are refused, and counts them in `meters`. `clock` returns seconds and
    never goes back.
    """

    __slots__ = (
        "_clock",
        "_late_at",
        "_late_since",
        "_meters",
        "_refused_at",
        "is_over",
        "refused",
    )

    def __init__(self, meters: CallMeters, clock: Callable[[], float] = perf_counter) -> None:
        self._meters = meters
        self._clock = clock
        self._late_since = self._late_at = float("-inf")
        self._refused_at = 0.0
        self.is_over = True
        self.refused = 0
        """Calls that were refused since the start."""

    def now(self) -> float:
        """Returns the time at which a call comes."""
        return self._clock()

    def refuses(self, came: float, serving: Count, open_calls: Count) -> bool:
        """Returns whether calls that came at a time, and that the loop takes now, are refused.
        `serving`: the calls that are not answered yet; `open_calls` also counts what the transport
        has to send, and takes a tenth of a millisecond.
        """
        now = self._clock()
        is_late = now - came >= LATE_SECONDS
        if self.is_over:
            return is_late and self._begins(now, now - came, open_calls)
        if serving() >= SERVED_MIN and (is_late or open_calls() >= OVERLOADED_CALLS_MAX):
            self._refused_at = now
            return True
        if now - self._refused_at >= CALM_SECONDS:
            self.is_over = True
            LOG.warning("no more overload", refused=self.refused)
        return False

    def count(self, path: str) -> None:
        """Counts a call that is refused."""
        self.refused += 1
        meter = self._meters.of(*path[1:].split("/"))
        meter.begin()
        meter.end("RESOURCE_EXHAUSTED", 0.0)

    def _begins(self, now: float, late_seconds: float, open_calls: Count) -> bool:
        if now - self._late_at > PAUSE_SECONDS:
            self._late_since = now
        self._late_at = now
        if now - self._late_since < ALL_LATE_SECONDS or open_calls() < CALLS_MIN:
            return False
        self.is_over, self._refused_at = False, now
        LOG.warning("overload: calls are refused", late_seconds=round(late_seconds, 3))
        return True
