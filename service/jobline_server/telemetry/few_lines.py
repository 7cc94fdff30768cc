"""A log that whoever calls can write to: so many lines a second, and how many were left out."""

from __future__ import annotations

from collections.abc import Callable

LINES_PER_SECOND = 10


class FewLines:
    """Says which lines to write. `clock` returns seconds and never goes back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._second = 0
        self._lines = 0
        self._left_out = 0

    def next(self) -> int | None:
        """Returns how many lines were left out before this one; None if it is left out, too."""
        second = int(self._clock())
        if second != self._second:
            self._second, self._lines = second, 0
        if self._lines >= LINES_PER_SECOND:
            self._left_out += 1
            return None
        self._lines += 1
        left_out, self._left_out = self._left_out, 0
        return left_out
