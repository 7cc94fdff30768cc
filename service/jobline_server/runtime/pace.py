"""Frees the loop after each slice of work, by the clock.

What a job costs differs by ten times, with its options, its group and what the caches hold, so a
number of jobs alone is no bound on the time.
"""

from __future__ import annotations

import asyncio
from time import perf_counter

# How long one call works in one step of the loop. It goes on with what it is at, so what it does
# between two looks at the time comes on top.
SLICE_SECONDS = 0.005


class Pace:
    """The pace of one call: begins its first slice when it is made."""

    __slots__ = ("_began",)

    def __init__(self) -> None:
        self._began = perf_counter()

    def is_over(self) -> bool:
        """Returns whether the slice is over."""
        return perf_counter() - self._began >= SLICE_SECONDS

    async def rest(self) -> None:
        """Lets others go on if the slice is over; then the next one begins."""
        # As `is_over`, which single calls, too, would pay for.
        if perf_counter() - self._began >= SLICE_SECONDS:
            await asyncio.sleep(0)
            self._began = perf_counter()
