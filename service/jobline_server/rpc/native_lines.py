"""Unary calls of the native transport, from when they come until they are answered.

If all calls began as they come, a busy loop would have ever more of them under way, all would be
late together, and an overload would be seen only once hundreds are. So no more are served at once
than keep the processor busy. The others wait here until one of these ends, where an overload finds
them not begun and can refuse them.

What is served may wait for something else than the processor: a slow disk, jobs, an operator's
call that takes a minute. So more begin whenever the loop has nothing to do, and in an overload a
call that lasts is not counted any more.

While calls wait the loop always has something to do, and the thread that commits, which needs the
interpreter for a moment between any two of its steps, waits for it each time. So it is given it
sooner then: after half a millisecond in place of five.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from jobline_server.rpc.native_calls import Batch, NativeCall, Serve, Waiting
from jobline_server.rpc.overload import Lateness, Overload

# So many calls of a line are served at once, which is enough for one commit.
PLACES = 64
# Of the messages of calls that wait in a line.
WAITING_BYTES_MAX = 256 << 20
# When a thread that waits for the interpreter is given it, usually and while calls wait.
SWITCH_SECONDS, SWITCH_SOON_SECONDS = sys.getswitchinterval(), 0.0005
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


class Queue(Protocol):
    """Calls that wait."""

    def __len__(self) -> int:
        """Returns some number, 0 if none wait."""

    def append(self, one: Waiting, /) -> None:
        """Adds a call."""

    def popleft(self) -> Waiting:
        """Removes and returns the next."""


class Line:
    """Calls of one port that wait in their order, and the count of those that are served, at most
    `places` unless the loop has nothing to do; up to `at_once` of them begin in an iteration.
    `serve` serves one, in a task.
    """

    counted_seconds = COUNTED_SECONDS

    __slots__ = (
        "_at_once",
        "_batches",
        "_begun",
        "_bytes",
        "_count",
        "_given_up",
        "_is_going_on",
        "_loop",
        "_now",
        "_places",
        "_serve",
        "_served",
        "_timer",
        "waiting",
    )

    def __init__(self, places: int, at_once: int, serve: Serve, now: Callable[[], float]) -> None:
        self._places = places
        self._at_once = at_once
        self._serve = serve
        self._now = now
        self._loop = asyncio.get_running_loop()
        self.waiting: Queue = deque()
        """In their order, with those that were given up."""
        # How many these are, those whose callers are gone, and the bytes of all.
        self._count = 0
        self._given_up = 0
        self._bytes = 0
        # Calls that are not answered; of these, those of the batches that are counted.
        self._begun = 0
        self._served = 0
        self._batches: deque[Batch] = deque()
        self._is_going_on = False
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return self._count - self._given_up

    def unanswered(self) -> int:
        """Returns how many calls are not answered, those that have not begun included."""
        return len(self) + self._begun

    def add(self, call: Waiting) -> None:
        """Adds a call; `go_on` begins it once those before it have begun. It begins at once if all
        have too many bytes, and admission, which counts those of calls that began, refuses it.
        """
        self._bytes += len(call.raw)
        if self._bytes > WAITING_BYTES_MAX:
            self._bytes -= len(call.raw)
            self.begin(call)
        else:
            self._count += 1
            self.waiting.append(call)

    def enter(self, call: Waiting) -> None:
        """Begins a call if there is room and nobody waits; else it waits."""
        if self._count or self._served >= self._at_once:
            self.add(call)
            self._go_on_soon()
        else:
            self.begin(call)

    def give_up(self, call: NativeCall) -> None:
        """Notes that the caller of one that waits is gone: it never begins."""
        call.is_cancelled = True
        self._given_up += 1

    def go_on(self) -> None:
        """Begins those for which there is room."""
        if not self._count or self._is_going_on:
            return
        room = self._places - self._served
        if room < self._count:
            room = self._places - self.serving()
        found = self._some(min(room, self._at_once))
        for one in found:
            self.begin(one)
        if self._count and room > len(found):
            self._go_on_soon()
        if self._count and self._timer is None:
            sys.setswitchinterval(SWITCH_SOON_SECONDS)
            due = self._now() + IDLE_SECONDS
            self._timer = self._loop.call_later(IDLE_SECONDS, self._look_again, due)

    def begin(self, one: Waiting) -> None:
        """Begins a call, whoever waits."""
        batches, now = self._batches, self._now()
        if not batches or (batches[-1].calls and now - batches[-1].at >= TOGETHER_SECONDS):
            self.serving()  # else only calls that never wait would leave ever more of them
            batches.append(Batch(now))
        one.call.batch = batch = batches[-1]
        if not batch.calls:
            batch.at = now
        batch.calls += 1
        self._begun += 1
        self._served += 1
        one.call.task = self._loop.create_task(self._serve(one.number, one.call, one.raw))

    def end(self, call: NativeCall) -> None:
        """Makes room in the place of a call that had begun."""
        if call.batch is not None:
            call.batch.calls -= 1
            self._begun -= 1
            self._served -= call.batch.is_counted
        if self._count:
            self._go_on_soon()

    def serving(self) -> int:
        """Returns how many calls are served."""
        batches, now = self._batches, self._now()
        while batches and (not batches[0].calls or now - batches[0].at >= self.counted_seconds):
            batch = batches.popleft()
            batch.is_counted = False
            self._served -= batch.calls
        return self._served

    def take_all(self) -> list[Waiting]:
        """Removes and returns all that have not begun."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            sys.setswitchinterval(SWITCH_SECONDS)
        return self._next(self._count)

    def _go_on_soon(self) -> None:
        """In the next iteration, once, however many calls end in this one."""
        if not self._is_going_on:
            self._is_going_on = True
            self._loop.call_soon(self._go_on_now)

    def _go_on_now(self) -> None:
        self._is_going_on = False
        self.go_on()

    def _look_again(self, due: float) -> None:
        self._timer = None
        sys.setswitchinterval(SWITCH_SECONDS)
        self._begin_if_idle(due)
        self.go_on()

    def _begin_if_idle(self, due: float) -> None:
        if self._now() - due < IDLE_LATE_SECONDS:
            for one in self._some(self._places):
                self.begin(one)

    def _next(self, count: int) -> list[Waiting]:
        """Removes up to `count` calls, and returns those that were not given up."""
        waiting, found = self.waiting, list[Waiting]()
        for _ in range(min(count, self._count)):
            one = waiting.popleft()
            self._count -= 1
            self._bytes -= len(one.raw)
            if one.call.is_cancelled:
                self._given_up -= 1
            else:
                found.append(one)
        return found

    # Those that begin together.
    _some = _next


class RefusableLine(Line):
    """Those that an overload refuses: `refuse` takes them from here; `count_open` counts those that
    are not answered yet.
    """

    __slots__ = ("_count_open", "_lateness", "_overload", "_refuse")
    waiting: deque[Waiting]

    def __init__(
        self,
        overload: Overload,
        serve: Serve,
        refuse: Callable[[Sequence[Waiting]], None],
        count_open: Callable[[], int],
    ) -> None:
        super().__init__(PLACES, PLACES, serve, overload.now)
        self._overload = overload
        self._lateness = Lateness()
        self._refuse = refuse
        self._count_open = count_open

    def go_on(self) -> None:
        """Begins those for which there is room, or refuses some if it is an overload."""
        waiting, overload = self.waiting, self._overload
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
        super().go_on()

    def _begin_if_idle(self, due: float) -> None:
        if self._overload.is_over:
            super()._begin_if_idle(due)
