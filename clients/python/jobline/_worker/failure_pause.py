"""`FailurePause`: when a worker takes no jobs, because attempts have failed in a row. Pure.

What jobs need may be down: their worker would fail one after the other, and use up their attempts.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FailurePauseSettings:
    """`failures`: how many attempts must have failed in a row. `pause`: for how many seconds no
    jobs are taken then.
    """

    failures: int
    pause: float


class FailurePause:
    """Counts attempts that fail in a row. After a pause the next failure is enough for another one,
    until a job succeeds. Safe on all threads.
    """

    def __init__(self, settings: FailurePauseSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._is_closed = False
        self._ends_at: float | None = None
        self.in_a_row = 0

    @property
    def is_paused(self) -> bool:
        """Whether no jobs are taken."""
        return self._ends_at is not None

    def note_success(self) -> None:
        """Notes a job that is done. A pause goes on."""
        if self.in_a_row:  # mostly there is nothing to forget
            with self._lock:
                self.in_a_row = 0

    def note_failure(self, now: float) -> bool:
        """Notes an attempt that has failed; returns whether a pause begins."""
        with self._lock:
            self.in_a_row += 1
            is_enough = self.in_a_row >= self._settings.failures
            if not is_enough or self.is_paused or self._is_closed:
                return False
            self._ends_at = now + self._settings.pause
            return True

    def resume_if_over(self, now: float) -> bool:
        """Ends the pause if it is over; returns whether it has ended now."""
        with self._lock:
            if self._ends_at is None or now < self._ends_at:
                return False
            self._ends_at = None
            self.in_a_row = min(self.in_a_row, self._settings.failures - 1)
            return True

    def next_deadline(self) -> float | None:
        """Returns when the pause ends, None without one."""
        return self._ends_at

    def close(self) -> None:
        """Begins no pause any more: the worker stops."""
        with self._lock:
            self._is_closed = True
            self._ends_at = None
