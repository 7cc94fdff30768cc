"""Waits for an event with a time limit, alone or among many."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from typing import Any

# What comes again and again may come together, when the loop's time is a multiple of this: an idle
# process costs most by being woken.
TICK_SECONDS = 0.5
# Of those who wait for the same, how many go on in one iteration of the loop.
WOKEN_AT_ONCE = 16


class PacedEvent:
    """Wakes all who wait when it is set, a few in each iteration of the loop: a thousand at once
    would hold up everybody else. It has no state: who waits afterwards waits for the next time.
    """

    __slots__ = ("_is_waking", "_loop", "_waiting", "_woken")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[asyncio.Future[bool], None] = {}
        self._woken: deque[asyncio.Future[bool]] = deque()
        self._is_waking = False

    def __len__(self) -> int:
        """Returns how many wait."""
        return len(self._waiting)

    def set(self) -> None:
        """Wakes those who wait."""
        if self._waiting:
            self._woken.extend(self._waiting)
            self._waiting.clear()
            if not self._is_waking:
                self._is_waking = True
                self._wake()

    async def is_set_by(self, deadline: float) -> bool:
        """Waits until it is set, or the loop's time is `deadline`; returns whether it was set."""
        future: asyncio.Future[bool] = self._loop.create_future()
        self._waiting[future] = None
        timer = self._loop.call_at(deadline, _settle, future, False)  # a result
        try:
            return await future
        finally:
            timer.cancel()
            self._waiting.pop(future, None)

    def _wake(self) -> None:
        for _ in range(min(WOKEN_AT_ONCE, len(self._woken))):
            _settle(self._woken.popleft(), True)  # a result
        if self._woken:
            self._loop.call_soon(self._wake)
        else:
            self._is_waking = False


def _settle(future: asyncio.Future[bool], result: bool) -> None:  # of any future
    if not future.done():
        future.set_result(result)


async def is_set_by(event: asyncio.Event, deadline: float) -> bool:
    """Waits until an event is set, or the loop's time is `deadline`; returns whether it was set."""
    try:
        async with asyncio.timeout_at(deadline):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    """Waits up to `seconds` for an event; returns whether it was set."""
    return await is_set_by(event, asyncio.get_running_loop().time() + seconds)


async def is_set_by_tick(event: asyncio.Event, seconds: float) -> bool:
    """Waits about so long for an event, as `tick_after` says; returns whether it was set."""
    return await is_set_by(event, tick_after(asyncio.get_running_loop().time(), seconds))


def tick_after(now: float, seconds: float) -> float:
    """Returns the last tick within so many seconds, or the next one if that would be less than half
    of them; shorter times are left as they are.
    """
    end = now + seconds
    if seconds < TICK_SECONDS:
        return end
    tick = end // TICK_SECONDS * TICK_SECONDS
    return tick if tick - now >= seconds / 2 else tick + TICK_SECONDS


async def first_of(*coroutines: Coroutine[Any, Any, Any]) -> None:
    """Waits for the first of these to end, however it does, and cancels the others."""
    tasks = [asyncio.create_task(one) for one in coroutines]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
