"""How a worker stops: finish, then cancel, then release. Pure.

    WORKING ── stop ─▶ FINISHING ── soft stop ─▶ CANCELLING ── hard stop ─▶ RELEASING
                                                            ── confirmed, or 5 s ─▶ STOPPED

Each stage ends early when nothing is left for it, and at once at another request to stop. A polite
stop never costs a job more than a kill does: running jobs may finish, jobs that have not started
are released at once, and jobs that do not end are released rather than left to their leases. A
worker that may end by itself stops after it was idle for a while.
"""

from __future__ import annotations

from enum import IntEnum

from jobline._arguments import span_given
from jobline._times import Seconds
from jobline.errors import InvalidArgument

# Seconds that the server has to confirm the last settles.
CONFIRM_SECONDS_MAX = 5.0


class Stage(IntEnum):
    """The stages of a stop."""

    WORKING = 0
    FINISHING = 1
    CANCELLING = 2
    RELEASING = 3
    STOPPED = 4


class Drain:
    """The stages of one worker's stop: `soft_stop` and `hard_stop` seconds long."""

    def __init__(self, *, soft_stop: float, hard_stop: float) -> None:
        self._lengths = {
            Stage.FINISHING: soft_stop,
            Stage.CANCELLING: hard_stop,
            Stage.RELEASING: CONFIRM_SECONDS_MAX,
        }
        self._ends_at: float | None = None
        # Two counters, each with one side that writes it: nothing is lost between threads.
        self._stops_requested = 0
        self._stops_taken = 0
        self.stage = Stage.WORKING
        self._idle_limit: float | None = None
        self._idle_since: float | None = None
        self._finished = -1

    def request_stop(self) -> None:
        """Requests the stop, or its next stage. Safe in a signal handler."""
        self._stops_requested += 1

    def stop_when_idle(self, limit: float) -> None:
        """Has the worker stop when it was idle for `limit` seconds. Raises InvalidArgument for a
        time in which no job can come.
        """
        if not limit > 0:
            raise InvalidArgument(f"exit_when_idle is a time above 0 s, not {limit:g}")
        self._idle_limit = limit

    def check_idle(self, now: float, *, is_busy: bool, finished: int) -> float | None:
        """Requests the stop if the worker was idle for long enough. Returns the seconds until that
        may be, None if it does not stop by itself.

        `is_busy`: there is a job at hand, or no connection. `finished`: how many jobs are done with
        since the start: those that came and went between two checks were work too.
        """
        if self._idle_limit is None or self.stage is not Stage.WORKING:
            return None
        if is_busy or finished != self._finished or self._idle_since is None:
            self._idle_since, self._finished = now, finished
        left = self._idle_since + self._idle_limit - now
        if left > 0:
            return left
        self.request_stop()
        self._idle_limit = None
        return 0.0

    def step(self, now: float, *, is_idle: bool, is_confirmed: bool) -> Stage | None:
        """Returns the stage that begins now, if one does; call again until it is None.

        `is_idle`: no handler runs. `is_confirmed`: the server knows all that was settled.
        """
        if self.stage is Stage.STOPPED:
            return None
        if self._stops_taken < self._stops_requested:
            self._stops_taken += 1
        elif not self._is_over(now, is_idle=is_idle, is_confirmed=is_confirmed):
            return None
        self.stage = Stage(self.stage + 1)
        length = self._lengths.get(self.stage)
        self._ends_at = None if length is None else now + length
        return self.stage

    def next_deadline(self) -> float | None:
        """Returns when the stage ends at the latest."""
        return self._ends_at

    def _is_over(self, now: float, *, is_idle: bool, is_confirmed: bool) -> bool:
        if self.stage is Stage.WORKING:
            return False
        if self.stage is Stage.RELEASING and is_confirmed:
            return True
        if self.stage in {Stage.FINISHING, Stage.CANCELLING} and is_idle:
            return True
        return self._ends_at is not None and now >= self._ends_at


def drain_given(soft_stop: Seconds, hard_stop: Seconds) -> Drain:
    """Returns the stages of a worker with these times. Raises InvalidArgument for what is none."""
    return Drain(
        soft_stop=span_given("soft_stop", soft_stop), hard_stop=span_given("hard_stop", hard_stop)
    )
