"""How a worker stops: finish, then cancel, then release. Pure.

    WORKING ── stop ─▶ FINISHING ── soft stop ─▶ CANCELLING ── hard stop ─▶ RELEASING
                                                            ── said, or 5 s ─▶ STOPPED

Each stage ends early when there is nothing left for it, and at once when somebody asks a second
time. A polite stop never costs a job more than a kill does: what is running may finish, what is
not started is given back at once, and what does not end is given back rather than left to its
lease.
"""

from __future__ import annotations

from enum import IntEnum

# Seconds that the server has to confirm the last settles.
FAREWELL = 5.0


class Stage(IntEnum):
    """Where a stop stands."""

    WORKING = 0
    FINISHING = 1
    CANCELLING = 2
    RELEASING = 3
    STOPPED = 4


class Drain:
    """The stages of one worker's stop, `soft_stop` and `hard_stop` seconds long."""

    def __init__(self, *, soft_stop: float, hard_stop: float) -> None:
        self._lengths = {
            Stage.FINISHING: soft_stop,
            Stage.CANCELLING: hard_stop,
            Stage.RELEASING: FAREWELL,
        }
        self._ends_at: float | None = None
        # Two counters, each with one side that writes it: nothing is lost between threads.
        self._asked = 0
        self._heeded = 0
        self.stage = Stage.WORKING

    def ask(self) -> None:
        """Somebody wants the worker to stop, or to stop sooner. Safe in a signal handler."""
        self._asked += 1

    def step(self, now: float, *, is_idle: bool, is_confirmed: bool) -> Stage | None:
        """The stage that begins now, if one does; call again until it is None.

        `is_idle`: no handler runs. `is_confirmed`: the server knows all that was settled.
        """
        if self.stage is Stage.STOPPED:
            return None
        if self._heeded < self._asked:
            self._heeded += 1
        elif not self._is_over(now, is_idle=is_idle, is_confirmed=is_confirmed):
            return None
        self.stage = Stage(self.stage + 1)
        length = self._lengths.get(self.stage)
        self._ends_at = None if length is None else now + length
        return self.stage

    def next_deadline(self) -> float | None:
        """When the stage ends by itself."""
        return self._ends_at

    def _is_over(self, now: float, *, is_idle: bool, is_confirmed: bool) -> bool:
        if self.stage is Stage.WORKING:
            return False
        if self.stage is Stage.RELEASING and is_confirmed:
            return True
        if self.stage in {Stage.FINISHING, Stage.CANCELLING} and is_idle:
            return True
        return self._ends_at is not None and now >= self._ends_at
