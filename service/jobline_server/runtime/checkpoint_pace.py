"""How a checkpoint shares the store's time with commits, and how long a stop waits for one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from jobline_server.runtime.core import Core
from jobline_server.runtime.waiting import is_set_within
from jobline_server.storage.checkpoint import PASSES_ALIKE

# After each write of a checkpoint the store belongs to commits for so many times as long as it
# took: the first at the beginning, the second when the journals have grown since by so many times
# what makes a checkpoint worth it; less in each later pass over what changed meanwhile.
REST_MAX = 8.0
REST_MIN = 1.0
GROWTH_MAX = 2
# A stop folds journals for so long at most. A million jobs with a row each take a minute, and
# supervisors kill who takes longer than they allow; the next start reads a journal that was left.
STOP_SECONDS = 10.0

T = TypeVar("T")


class GivenUp(Exception):
    """A stop has no more time for a checkpoint. What it staged is dropped by the next start."""


class Hurry:
    """Whether the server stops: checkpoints do not rest then, and after a while go no further.
    `clock` returns seconds and never goes back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun = asyncio.Event()
        self._ends_at = float("inf")

    def begin(self) -> None:
        """The stop begins; more calls change nothing."""
        if not self._begun.is_set():
            self._begun.set()
            self._ends_at = self._clock() + STOP_SECONDS

    @property
    def is_over(self) -> bool:
        """Returns whether there is no more time for checkpoints."""
        return self._clock() >= self._ends_at

    async def begins_within(self, seconds: float) -> None:
        """Waits so long, or until the stop begins."""
        await is_set_within(self._begun, seconds)


class Share:
    """A checkpoint's share of the store's time: it writes between commits, which have most of that
    time until there is a `hurry`. Within `room` bytes of journal growth the share rises to one
    half.
    """

    def __init__(self, core: Core, room: int, hurry: Hurry) -> None:
        self._core = core
        self._room = room
        self._hurry = hurry
        self._began = core.slots.journal_bytes()

    async def write(self, write: Callable[[], Awaitable[T]], *, passes: int = 1) -> T:
        """Writes when the store is free, then rests. Raises `GivenUp` instead of either."""
        if self._hurry.is_over:
            raise GivenUp
        async with self._core.commits.exclusive:
            began = time.monotonic()
            outcome = await write()
            took = time.monotonic() - began
        # Without a rest too: commits that waited for the lock go first.
        await asyncio.sleep(0)
        grown = self._core.slots.journal_bytes() - self._began
        rest = rest_after(took, grown=grown, room=self._room, passes=passes)
        await self._hurry.begins_within(rest)
        return outcome


def rest_after(seconds: float, *, grown: int, room: int, passes: int = 1) -> float:
    """Returns how long to rest after a write, in seconds. `seconds` is the length of that write;
    `grown` and `room` are the growth of the journals and the growth they may have; later passes
    rest less, and none once slices would have to grow or a checkpoint could be overtaken by new
    changes.
    """
    if passes >= PASSES_ALIKE:
        return 0.0
    hurry = min(max(grown / room, 0), 1) ** 2
    return seconds * (REST_MAX - (REST_MAX - REST_MIN) * hurry) / passes**2
