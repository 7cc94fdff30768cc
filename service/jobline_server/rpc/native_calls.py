"""Unary calls of the native transport, from when they come until they are answered.

If all calls that came in one iteration of the loop began in the next, the iterations of a busy loop
would grow with what comes in them, and what takes several (a commit has five) would wait for as
many calls. So only some begin in each. The others wait here, where an overload finds them not begun
and can refuse them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, NoReturn

import grpc
from grpc import aio

from jobline_server.rpc.guard import UnaryAnswer
from jobline_server.rpc.overload import Lateness, Overload

# Calls that begin in an iteration of the loop: some milliseconds of pushes. Fewer would part those
# who come together and share a commit.
BEGUN_AT_ONCE = 64
# Calls that are refused in an iteration: each takes about 20 µs.
REFUSED_AT_ONCE = 256

Metadata = Sequence[tuple[str, str | bytes]]


class NativeCall:
    """A unary call that is not answered yet; its handler gets it in place of gRPC's context."""

    __slots__ = (
        "_peer",
        "answer",
        "has_begun",
        "is_cancelled",
        "metadata",
        "path",
        "status",
        "task",
    )

    metadata: Metadata
    """Set only where handlers ask who calls."""

    def __init__(self, path: str, answer: UnaryAnswer, peer: str) -> None:
        self.path = path
        self.answer = answer
        self._peer = peer
        self.task: asyncio.Task[None] | None = None
        self.has_begun = False
        # Its caller is gone, or its deadline has passed.
        self.is_cancelled = False
        self.status: tuple[int, str, list[tuple[str, str | bytes]]] | None = None

    def peer(self) -> str:
        """Returns who calls, as `ServicerContext.peer` does."""
        return self._peer

    def invocation_metadata(self) -> Metadata:
        """Returns the metadata of the call."""
        return self.metadata

    def auth_context(self) -> Mapping[str, Sequence[bytes]]:
        """Returns nothing: there are no certificates without TLS."""
        return {}

    async def abort(
        self,
        code: grpc.StatusCode,
        details: str = "",
        trailing_metadata: Sequence[tuple[str, str | bytes]] = (),
    ) -> NoReturn:
        """Ends the call with a status, as `ServicerContext.abort` does."""
        self.status = (code.value[0], details, list(trailing_metadata))
        raise aio.AbortError("Locally aborted.")


class Waiting(NamedTuple):
    """A call that has not begun: its number and its method's, its message, and when it came."""

    number: int
    method: int
    call: NativeCall
    raw: bytes
    came: float


class WaitingCalls:
    """The calls of one port. `begin` and `refuse` take them from here; `count_open` counts those
    that are not answered, these included.
    """

    __slots__ = (
        "_begin",
        "_count_open",
        "_given_up",
        "_is_going_on",
        "_lateness",
        "_loop",
        "_overload",
        "_refuse",
        "_waiting",
    )

    def __init__(
        self,
        overload: Overload,
        begin: Callable[[Waiting], None],
        refuse: Callable[[Sequence[Waiting]], None],
        count_open: Callable[[], int],
    ) -> None:
        self._overload = overload
        self._lateness = Lateness()
        self._begin = begin
        self._refuse = refuse
        self._count_open = count_open
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Waiting] = deque()
        # Of these, those whose callers are gone.
        self._given_up = 0
        self._is_going_on = False

    def __len__(self) -> int:
        return len(self._waiting) - self._given_up

    def add(self, call: Waiting) -> None:
        """Adds a call; `go_on` begins it once those before it have begun."""
        self._waiting.append(call)

    def give_up(self, call: NativeCall) -> None:
        """Notes that the caller of one that waits is gone: it never begins."""
        call.is_cancelled = True
        self._given_up += 1

    def go_on(self) -> None:
        """Begins the next ones, unless those before them wait for the next iteration."""
        if not self._is_going_on:
            self._begin_some()

    def take_all(self) -> list[Waiting]:
        """Removes and returns all that have not begun."""
        return self._next(len(self._waiting))

    def _begin_some(self) -> None:
        self._is_going_on = False
        waiting = self._waiting
        if not waiting:
            return
        if self._is_overload():
            self._refuse(self._next(REFUSED_AT_ONCE))
        else:
            for one in self._next(BEGUN_AT_ONCE):
                self._begin(one)
        if waiting:
            self._is_going_on = True
            self._loop.call_soon(self._begin_some)

    def _is_overload(self) -> bool:
        """Returns whether the next call may not begin: in an overload only those do that have not
        waited.
        """
        overload, came = self._overload, self._waiting[0].came
        return not overload.is_over or overload.begins(self._lateness, came, self._count_open)

    def _next(self, count: int) -> list[Waiting]:
        """Removes up to `count` calls, and returns those that were not given up."""
        waiting = self._waiting
        taken = [waiting.popleft() for _ in range(min(count, len(waiting)))]
        found = [one for one in taken if not one.call.is_cancelled]
        self._given_up -= len(taken) - len(found)
        return found
