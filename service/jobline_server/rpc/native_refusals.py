"""Refusals of calls in an overload, as the native transport gives them.

To refuse a call takes a third of what a push takes, most of it in the transport, which has read the
call before anybody can refuse it. Callers who are told at once call again at once, and can keep a
core busy with refusals. So only some of a second are told at once. Beyond that each is told later,
after three seconds at most, and meanwhile its call is open: a connection has a bounded number of
open calls, so that who floods the server is slowed down by its own calls, and others are served.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

# These take a third of a core.
REFUSALS_PER_SECOND = 5_000
HELD_SECONDS_MAX = 3.0
# What was not used of that is kept for so long: refusals come in bursts.
SAVED_SECONDS = 0.05
# Calls held at once, about 10 KB of memory each in the transport; the oldest is told in place of
# one more.
HELD_MAX = 20_000
# Those due within this time are told together.
TOGETHER_SECONDS = 0.005


class Refusals:
    """Calls of one port that are refused and not told yet. `tell` takes the number of one."""

    __slots__ = ("_held", "_loop", "_next", "_tell", "_timer")

    def __init__(self, tell: Callable[[int], object]) -> None:
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        # Numbers of calls, and when each is told, in this order.
        self._held: OrderedDict[int, float] = OrderedDict()
        self._next = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._held)

    def add(self, number: int) -> None:
        """Tells a caller of its refusal, now or soon."""
        now = self._loop.time()
        due = max(self._next, now - SAVED_SECONDS)
        self._next = min(due + 1 / REFUSALS_PER_SECOND, now + HELD_SECONDS_MAX)
        if due <= now and not self._held:
            self._tell(number)
            return
        if len(self._held) >= HELD_MAX:
            self._tell(self._held.popitem(last=False)[0])
        self._held[number] = due
        if self._timer is None:
            self._timer = self._loop.call_at(due + TOGETHER_SECONDS, self._tell_due)

    def forget(self, number: int) -> None:
        """Forgets a call whose caller is gone."""
        self._held.pop(number, None)

    def tell_all(self) -> None:
        """Tells all that are held, as the port closes."""
        for number in self._held:
            self._tell(number)
        self._held.clear()

    def _tell_due(self) -> None:
        self._timer = None
        held, now = self._held, self._loop.time()
        while held:
            number, due = next(iter(held.items()))
            if due > now:
                self._timer = self._loop.call_at(due + TOGETHER_SECONDS, self._tell_due)
                return
            del held[number]
            self._tell(number)
