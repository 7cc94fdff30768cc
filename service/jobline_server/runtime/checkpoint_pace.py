"""How a checkpoint shares the store's time with commits, and how long a stop waits for one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from jobline_server.runtime.core import Core
from jobline_server.runtime.waiting import is_set_within
from jobline_server.storage.checkpoint import OUTRUN_MAX, PASS_SHRINKS, Progress

# After each write of a checkpoint the store belongs to commits for so many times as long as it
# took: the first at most, or the second once the journals have grown by so many times what makes a
# checkpoint worth it; at least half of that, and less after each pass that was outrun. Between
# these it rests as long as it can if the next pass is to be so much smaller (`PASS_SHRINKS`): one
# that is slow at first has more to write later, all at once, and leaves commits no disk then. Not
# less than half: a load that works off millions of jobs had 0.6 of its rate while they were folded.
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
        self._pass = PassTime()

    async def write(
        self,
        write: Callable[[], Awaitable[T]],
        progress: Callable[[], Progress] | None = None,
    ) -> T:
        """Writes when the store is free, then rests. Raises `GivenUp` instead of either. `progress`
        returns how far the pass is that this write belongs to.
        """
        if self._hurry.is_over:
            raise GivenUp
        async with self._core.commits.exclusive:
            began = time.monotonic()
            outcome = await write()
            took = time.monotonic() - began
        # Without a rest too: commits that waited for the lock go first.
        await asyncio.sleep(0)
        grown = self._core.slots.journal_bytes() - self._began
        now = None if progress is None else progress()
        elapsed = self._pass.elapsed(now, began, time.monotonic()) if now else 0.0
        rest = rest_after(took, grown=grown, room=self._room, progress=now, elapsed=elapsed)
        await self._hurry.begins_within(rest)
        return outcome


class PassTime:
    """How long the pass of a checkpoint goes on."""

    def __init__(self) -> None:
        self._passes = 0
        self._began = 0.0

    def elapsed(self, progress: Progress, began: float, now: float) -> float:
        """Returns for how many seconds the pass has gone on, after a write that went on from
        `began` to `now` and made this progress.
        """
        if progress.passes != self._passes:
            self._passes, self._began = progress.passes, began
        return now - self._began


def rest_after(
    took: float, *, grown: int, room: int, progress: Progress | None = None, elapsed: float = 0.0
) -> float:
    """Returns how long to rest after a write that took so long, in seconds. `grown` and `room` are
    by how many bytes the journals have grown, and may grow; `elapsed` is since when the pass goes
    on that has made this `progress`.
    """
    hurry = min(max(grown / room, 0), 1) ** 2
    longest = took * (REST_MAX - (REST_MAX - REST_MIN) * hurry)
    if progress is None or not progress.changed:
        return longest
    least = max(longest / 2, took * REST_MIN) / (1 + progress.outrun) ** 2
    if progress.outrun >= OUTRUN_MAX:
        least = 0.0
    steady = elapsed * (PASS_SHRINKS * progress.taken / progress.changed - 1)
    return min(max(steady, least), longest)
