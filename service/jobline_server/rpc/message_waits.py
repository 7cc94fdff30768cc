"""Ends calls of grpc.aio whose message does not come.

A caller may declare a message of 16 MiB, send all of it but a byte, and stop. gRPC holds what has
come, and knows no time limit for the rest. Here a call has one; and so that many calls cannot hold
more than the bound on bytes within that time, those of the hosts with the most are ended before it.
How much of its message a call has is not known here: each counts as the largest message.

Time is counted in looks at all waiting calls, not in seconds: a loop that stood still has not read
what came meanwhile, and that is no fault of the callers. A call that does not wait for long costs
an entry in a table, and no timer.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import suppress
from heapq import heapify, heapreplace
from itertools import takewhile

import grpc
from grpc import aio

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.rpc.client_rates import host_of
from jobline_server.rpc.errors import Status, make_status, status_of
from jobline_server.rpc.gates import RETRY_AFTER_MS
from jobline_server.rpc.guard import Context, end_call
from jobline_server.telemetry.log import logger

LOG = logger("rpc")

LOOK_SECONDS = 1.0
# A call is ended once it has waited for so many looks.
LATE_LOOKS = 30
# One that has waited for so many counts with the bytes under way: of others the message is only
# just coming.
COUNTED_LOOKS = 2

LATE = make_status(
    grpc.StatusCode.UNAVAILABLE, "", "the call's message did not come in time; nothing was done"
)
OVER_THE_BOUND = status_of(
    Refused(
        RefusalKind.TOO_MANY_CALLS,
        "as many messages are under way as the server takes",
        retry_after_ms=RETRY_AFTER_MS,
    )
)


class MessageWaits:
    """The calls that wait for their message. `waiting_max`: how many of those that wait for long
    there may be at once.
    """

    __slots__ = ("_ending", "_loop", "_looks", "_timer", "_waiting", "_waiting_max")

    def __init__(self, waiting_max: int) -> None:
        self._waiting_max = waiting_max
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
        if len(self._waiting) > self._waiting_max:
            counted = self._since(COUNTED_LOOKS)
            over = self._of_the_largest_hosts(counted, len(counted) - self._waiting_max)
            self._end_all(over, OVER_THE_BOUND, "ended calls: too many messages are under way")
        self._timer = None
        if self._waiting:
            self._timer = self._loop.call_later(LOOK_SECONDS, self._look)

    def _since(self, looks: int) -> list[Context]:
        """Returns those that have waited for at least so many whole looks."""
        return [*takewhile(lambda one: self._waiting[one] + looks < self._looks, self._waiting)]

    def _of_the_largest_hosts(self, counted: list[Context], count: int) -> list[Context]:
        """Returns so many of the hosts that have the most, and leaves these with as many as others.
        Of a host those that came last: the others may be about to be complete.
        """
        if count <= 0:
            return []
        by_host: dict[str, list[Context]] = defaultdict(list)
        for context in counted:
            by_host[host_of(context.peer())].append(context)
        left = [(-len(waiting), host) for host, waiting in by_host.items()]
        heapify(left)
        found: list[Context] = []
        for _ in range(count):
            most, host = left[0]
            found.append(by_host[host].pop())
            heapreplace(left, (most + 1, host))
        return found

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
