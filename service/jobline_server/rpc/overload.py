"""Overload: refuses calls while the server cannot keep up with those that come.

Callers that do not wait for each other can send more than a server does. Without a bound each call
waits behind all before it: soon for seconds, until its caller has given up, and what is done is
done for nobody. So once calls have begun late for a while, only as many are accepted as are done
soon, and the others are refused with TOO_MANY_CALLS, which costs a part of a push. Those that
already wait are refused, too: else each call would go on waiting behind them.

A refusal is a reply, too, and the transport shares the processor: if it is behind with what it has
to read and to send, it is left more of the time.

A crowd that comes at once, after a process stood still perhaps, is no overload: those who come
after it are not late. Nor is what has gathered while the disk or the server stood still, if it is
done soon at the rate of now. Nor are a few callers with large calls, who wait for their replies.
"""

from __future__ import annotations

from collections.abc import Callable

# Measures how long calls have waited: in the thread that takes them, and in the loop.
from time import perf_counter

from jobline_server.telemetry.calls import CallMeters
from jobline_server.telemetry.log import logger

LOG = logger("rpc")

# A call that has not begun after this time is late.
LATE_SECONDS = 0.025
# It is overload once all calls have been late for this long, and one is late that came after the
# first late one; if this many are open by then, or so many and ever more: callers who wait for
# their replies are as many as they are, and not late for the lack of a server.
ALL_LATE_SECONDS = 0.05
CALLS_MIN = 1_000
GROWING_CALLS_MIN = 256
# From one look at the open calls to the next, after half of that time; and within a longer one.
GROWTH = 1.25
SLOW_GROWTH, SLOW_GROWTH_SECONDS = 1.5, 0.5
# It is none while what is open falls so fast that all would be done within this time.
DONE_SECONDS = 1.0
# Soon after the last overload so many are enough, as those who made it have not gone; but not for
# longer than this: as many callers who wait for their replies would have them follow each other.
AGAIN_CALLS_MIN = 128
AGAIN_IN_SECONDS = 10.0
# In an overload, so many are served at once, as refusals take a third of a core; unless the
# transport is behind: then some are, however many are refused.
SERVED_MAX = 48
SERVED_MIN = 8
# It is over once few were refused for so long, beside those accepted, and few wait to be told so.
# Not once none are: what is accepted does not wait, so some of a burst are refused at any rate.
CALM_SECONDS = 0.25
CALM_REFUSED_MAX = 0.5
# A server near its limit refuses more even if it could do all, so after this time that is tried.
LONG_SECONDS = 30.0
LONG_REFUSED_MAX = 1.0
# Where the next one begins so soon, it was not over: the next lasts twice as long, up to this.
AGAIN_SECONDS = 1.0
CALM_SECONDS_MAX = 4.0

Count = Callable[[], int]


class Lateness:
    """How long all calls of one port have been late: they wait behind each other alone."""

    __slots__ = ("_at", "_least", "_least_since", "_looked_at", "_open", "_since")

    def __init__(self) -> None:
        self._at = self._since = self._looked_at = self._least_since = float("-inf")
        self._open = self._least = 0

    def is_overload(self, now: float, came: float, open_calls: Count, *, by_few: bool) -> bool:
        """Returns whether that is so long, with so many calls open, that it is an overload;
        `by_few`: few are enough. The next call to be served came at a time.
        """
        if now - came < LATE_SECONDS:
            self._at = float("-inf")
            return False
        # Else it came while others were late.
        if came > self._at:
            self._since = self._looked_at = now
            self._open = CALLS_MIN  # nothing is taken to grow before a first look
        self._at = now
        if now - self._looked_at < ALL_LATE_SECONDS / 2:
            return False
        before, looked_at = self._open, self._looked_at
        self._open, self._looked_at = open_calls(), now
        if (before - self._open) * DONE_SECONDS >= before * (now - looked_at):
            return False
        if now - self._since < ALL_LATE_SECONDS or came < self._since:
            return False
        if self._least_since < self._since or now - self._least_since >= SLOW_GROWTH_SECONDS:
            self._least, self._least_since = self._open, now
        self._least = min(self._least, self._open)
        grown = min(GROWTH * before, SLOW_GROWTH * self._least)
        least = AGAIN_CALLS_MIN if by_few else max(grown, GROWING_CALLS_MIN)
        return self._open >= min(least, CALLS_MIN)


class Overload:
    """Decides which calls are refused, and counts them in `meters`. `clock` returns seconds and
    never goes back.
    """

    __slots__ = (
        "_accepted",
        "_began",
        "_began_by_many",
        "_began_looking",
        "_calm_seconds",
        "_ended_at",
        "_last_came",
        "_meters",
        "_refused",
        "held",
        "is_over",
        "now",
        "refused",
    )

    def __init__(self, meters: CallMeters, clock: Callable[[], float] = perf_counter) -> None:
        self._meters = meters
        self.now = clock
        """Returns the time at which a call comes."""
        self.refused = 0
        """Calls that were refused since the start."""
        self.held: list[Count] = []
        """How many refused calls each port has not told yet."""
        self._ended_at = float("-inf")
        self._calm_seconds = CALM_SECONDS
        self._began = self._began_by_many = self._last_came = float("-inf")
        self._look_again(0.0)
        self.is_over = True

    def _look_again(self, now: float) -> None:
        self._began_looking, self._accepted, self._refused = now, 0, 0

    def begins(self, lateness: Lateness, came: float, open_calls: Count) -> bool:
        """Returns whether an overload begins, as the next call of a port to be served came at a
        time.
        """
        now = self.now()
        again = now - self._ended_at < AGAIN_SECONDS
        by_few = again and now - self._began_by_many < AGAIN_IN_SECONDS
        if not lateness.is_overload(now, came, open_calls, by_few=by_few):
            return False
        if not by_few:
            self._began_by_many = now
        longer = min(2 * self._calm_seconds, CALM_SECONDS_MAX)
        self._calm_seconds = longer if again else CALM_SECONDS
        self.is_over = False
        self._began = self._last_came = now
        self._look_again(now)
        LOG.warning("overload: calls are refused", late_seconds=round(now - came, 3))
        return True

    def room(self, came: float, serving: int, is_behind: Callable[[], bool]) -> int:
        """Returns how many calls that came at a time may begin in an overload; the others are
        refused. `serving`: those that are served; `is_behind`: whether the transport is, which
        takes a tenth of a millisecond to say.
        """
        now = self.now()
        if now - self._began_looking >= self._calm_seconds:
            if self._is_past(now, serving):
                self.is_over, self._ended_at = True, now
                LOG.warning("no more overload", refused=self.refused)
            self._look_again(now)
        self._last_came = now
        room = SERVED_MAX - serving
        if room > 0 and (now - came >= LATE_SECONDS or is_behind()):
            room = SERVED_MIN - serving
        return max(room, 0)

    def _is_past(self, now: float, serving: int) -> bool:
        """Returns whether few were refused since the last look, or no calls came for long. Who is
        told late calls less often, so that few are refused of a flood; but callers who wait for
        that and call again at once are few, and would be held again for as long as they do.
        """
        held = sum([count() for count in self.held])
        if held:
            return held + serving < GROWING_CALLS_MIN
        is_long = now - self._began >= LONG_SECONDS
        most = self._accepted * (LONG_REFUSED_MAX if is_long else CALM_REFUSED_MAX)
        return self._refused <= most or now - self._last_came >= self._calm_seconds

    def note(self, accepted: int, refused: int) -> None:
        """Notes what became of calls that came in an overload: began, as there was room, or not."""
        self._accepted += accepted
        self._refused += refused

    def count(self, path: str, calls: int) -> None:
        """Counts calls of a method that were refused."""
        self.refused += calls
        self._meters.of(*path[1:].split("/")).refuse("RESOURCE_EXHAUSTED", calls)
