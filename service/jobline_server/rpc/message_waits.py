"""Ends calls of grpc.aio whose message does not come.

A caller may declare a message of 16 MiB, send all of it but a byte, and stop. gRPC holds what has
come, and knows no time limit for the rest. Here a call has one.

Time is counted in looks at all waiting calls, not in seconds: a loop that stood still has not read
what came meanwhile, and that is no fault of the callers. A call that does not wait for long costs
an entry in a table, and no timer.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import takewhile

import grpc
from grpc import aio

from jobline_server.rpc.errors import Status, make_status
from jobline_server.rpc.guard import Context, end_call
from jobline_server.telemetry.log import logger

LOG = logger("rpc")

LOOK_SECONDS = 1.0
# A call is ended once it has waited for so many looks.
LATE_LOOKS = 30

LATE = make_status(
    grpc.StatusCode.UNAVAILABLE, "", "the call's message did not come in time; nothing was done"
)


class MessageWaits:
    """The calls that wait for their message."""

    __slots__ = ("_ending", "_loop", "_looks", "_timer", "_waiting")

    def __init__(self) -> None:
        self._looks = 0
        # Since which look each waits, the oldest first.
        self._waiting: dict[Context, int] = {}
        self._ending: dict[Context, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        """Returns how many calls wait."""
        return len(self._waiting) + len(self._ending)

    def begin(self, context: Context) -> None:
        """Notes that a call begins to wait."""
        self._waiting[context] = self._looks
        if self._timer is None:
            self._timer = self._loop.call_later(LOOK_SECONDS, self._look)

    def end(self, context: Context) -> asyncio.Task[None] | None:
        """Forgets a call, which does not wait any more; returns what is ending it, if anything is:
        its message is of no use then.
        """
        if self._waiting.pop(context, None) is None:
            return self._ending.pop(context)
        return None

    def _look(self) -> None:
        self._looks += 1
        late = self._since(LATE_LOOKS)
        self._end_all(late, LATE, "ended calls whose message did not come")
        self._timer = None
        if self._waiting:
            self._timer = self._loop.call_later(LOOK_SECONDS, self._look)

    def _since(self, looks: int) -> list[Context]:
        """Returns those that have waited for at least so many whole looks."""
        return [*takewhile(lambda one: self._waiting[one] + looks < self._looks, self._waiting)]

    def _end_all(self, contexts: list[Context], status: Status, event: str) -> None:
        for context in contexts:
            del self._waiting[context]
            self._ending[context] = self._loop.create_task(_end(context, status))
        if contexts:
            LOG.warning(event, calls=len(contexts))


async def _end(context: Context, status: Status) -> None:
    # The caller may be gone by now.
    with suppress(aio.UsageError, aio.InternalError):
        await end_call(context, status)
