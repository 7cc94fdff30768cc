"""Unary calls of the native transport, from when they come until they are answered.

If all calls began as they come, a busy loop would have ever more of them under way, all would be
late together, and an overload would be seen only once hundreds are. So no more are served at once
than keep the processor busy. The others wait here until one of these ends, where an overload finds
them not begun and can refuse them.

What is served may wait for something else than the processor: a slow disk, jobs, an operator's
call that takes a minute. So more begin whenever the loop has nothing to do, and in an overload a
call that lasts is not counted any more.
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
from jobline_server.rpc.tls.callers import DoorCaller

# So many calls are served at once, which is enough for one commit.
PLACES = 64
# A call counts as served for so long, unless it ends before.
COUNTED_SECONDS = 0.25
# Those that begin within this time are counted together.
TOGETHER_SECONDS = 0.005
# The loop has nothing to do if a timer for the first time fires less than the second one late: an
# iteration of a busy loop takes longer.
IDLE_SECONDS = 0.002
IDLE_LATE_SECONDS = 0.0015
# Calls that are refused in an iteration: each takes about 20 µs.
REFUSED_AT_ONCE = 256

Metadata = Sequence[tuple[str, str | bytes]]


class NativeCall:
    """A unary call that is not answered yet; its handler gets it in place of gRPC's context."""

    __slots__ = (
        "_peer",
        "answer",
        "batch",
        "caller",
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
        # Set only where it came through a door.
        self.caller: DoorCaller | None = None
        self.task: asyncio.Task[None] | None = None
        self.batch: Batch | None = None
        self.has_begun = False
        # Its caller is gone, or its deadline has passed.
        self.is_cancelled = False
        self.status: tuple[int, str, list[tuple[str, str | bytes]]] | None = None

    def peer(self) -> str:
        """Returns who calls, as `ServicerContext.peer` does."""
        return self._peer if self.caller is None else self.caller.peer

    def invocation_metadata(self) -> Metadata:
        """Returns the metadata of the call."""
        return self.metadata

    def auth_context(self) -> Mapping[str, Sequence[bytes]]:
        """Returns the names of the certificate, as `ServicerContext.auth_context` does."""
        return {} if self.caller is None else self.caller.auth_context()

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


class Batch:
    """Calls that began about one time: how many are not answered, and whether these count."""

    __slots__ = ("at", "calls", "is_counted")

    def __init__(self, at: float) -> None:
        self.at = at
        self.calls = 0
        self.is_counted = True


class WaitingCalls:
    """The calls of one port that wait, and the count of those that are served. `begin` and `refuse`
    take them from here; `count_open` counts those that are not answered, these included.
    """

    __slots__ = (
        "_batches",
        "_begin",
        "_count_open",
        "_given_up",
        "_is_going_on",
        "_lateness",
        "_loop",
        "_overload",
        "_refuse",
        "_served",
        "_timer",
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
        # Calls of the batches that are counted.
        self._served = 0
        self._batches: deque[Batch] = deque()
        self._is_going_on = False
        self._timer: asyncio.TimerHandle | None = None

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
        """Begins those for which there is room, or refuses some if it is an overload."""
        waiting, overload = self._waiting, self._overload
        if not waiting or self._is_going_on:
            return
        # In an overload only those begin that have not waited.
        if not overload.is_over or overload.begins(
            self._lateness, waiting[0].came, self._count_open
        ):
            self._refuse(self._next(REFUSED_AT_ONCE))
            if waiting:
                self._go_on_soon()
            return
        room = PLACES - self._served
        if room < len(waiting):
            room = PLACES - self.serving()
        for one in self._next(room):
            self.begin(one)
        if waiting and self._timer is None:
            due = overload.now() + IDLE_SECONDS
            self._timer = self._loop.call_later(IDLE_SECONDS, self._begin_if_idle, due)

    def begin(self, one: Waiting) -> None:
        """Begins a call, whoever waits."""
        batches, now = self._batches, self._overload.now()
        if not batches or (batches[-1].calls and now - batches[-1].at >= TOGETHER_SECONDS):
            self.serving()  # else only settles, which never wait, would leave ever more of them
            batches.append(Batch(now))
        one.call.batch = batch = batches[-1]
        if not batch.calls:
            batch.at = now
        batch.calls += 1
        self._served += 1
        self._begin(one)

    def end(self, call: NativeCall) -> None:
        """Makes room in the place of a call that had begun."""
        if call.batch is not None:
            call.batch.calls -= 1
            self._served -= call.batch.is_counted
        if self._waiting:
            self._go_on_soon()

    def serving(self) -> int:
        """Returns how many calls are served."""
        batches, now = self._batches, self._overload.now()
        while batches and (not batches[0].calls or now - batches[0].at >= COUNTED_SECONDS):
            batch = batches.popleft()
            batch.is_counted = False
            self._served -= batch.calls
        return self._served

    def take_all(self) -> list[Waiting]:
        """Removes and returns all that have not begun."""
        return self._next(len(self._waiting))

    def _go_on_soon(self) -> None:
        """In the next iteration, once, however many calls end in this one."""
        if not self._is_going_on:
            self._is_going_on = True
            self._loop.call_soon(self._go_on_now)

    def _go_on_now(self) -> None:
        self._is_going_on = False
        self.go_on()

    def _begin_if_idle(self, due: float) -> None:
        self._timer = None
        overload = self._overload
        if overload.is_over and overload.now() - due < IDLE_LATE_SECONDS:
            for one in self._next(PLACES):
                self.begin(one)
        self.go_on()

    def _next(self, count: int) -> list[Waiting]:
        """Removes up to `count` calls, and returns those that were not given up."""
        waiting = self._waiting
        taken = [waiting.popleft() for _ in range(min(count, len(waiting)))]
        found = [one for one in taken if not one.call.is_cancelled]
        self._given_up -= len(taken) - len(found)
        return found
