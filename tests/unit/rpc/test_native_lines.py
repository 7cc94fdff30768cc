"""Calls that wait until they begin: in their order, as those before them end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Coroutine
from itertools import pairwise
from typing import Any

import pytest

from jobline_server.rpc import native_lines
from jobline_server.rpc.native_calls import NativeCall, Waiting
from jobline_server.rpc.native_lines import (
    COUNTED_SECONDS,
    IDLE_LATE_SECONDS,
    IDLE_SECONDS,
    TOGETHER_SECONDS,
    Line,
    RefusableLine,
)
from jobline_server.rpc.overload import CALLS_MIN, Overload
from jobline_server.telemetry.calls import CallMeters

AT_ONCE = 3
REFUSED = 5


class World:
    """Calls that come, and what became of them, by their numbers."""

    def __init__(self) -> None:
        self.now = 100.0
        # By how much each look at the clock is later than the one before.
        self.step = 0.0
        self.calls: dict[int, NativeCall] = {}
        self.begun: list[int] = []
        self.beginnings = asyncio.Semaphore(0)
        self.refused: list[int] = []
        self.open_calls = 0
        self.overload = Overload(CallMeters(), self._clock)
        self.waiting = self.port()

    def port(self) -> RefusableLine:
        """The calls of one more port."""
        return RefusableLine(
            self.overload,
            self._serve,
            lambda calls: self.refused.extend(one.number for one in calls),
            lambda: self.open_calls,
        )

    def _clock(self) -> float:
        self.now += self.step
        return self.now

    async def _served(self) -> None:
        self.beginnings.release()

    def _serve(self, number: int, _call: NativeCall, _raw: bytes) -> Coroutine[Any, Any, None]:
        self.begun.append(number)
        return self._served()

    def come(
        self, *numbers: int, port: Line | None = None, raw: bytes = b""
    ) -> dict[int, NativeCall]:
        """So many calls come in one batch."""
        waiting = self.waiting if port is None else port
        calls = {number: NativeCall("/a.B/C", answer, "peer", waiting) for number in numbers}
        self.calls |= calls
        for number, call in calls.items():
            waiting.add(Waiting(number, 0, call, raw, self.now))
        waiting.go_on()
        return calls

    def settles(self) -> Line:
        """A line of settles."""
        return Line(AT_ONCE, AT_ONCE, self._serve, self._clock)

    async def end(self, *numbers: int) -> None:
        """So many calls end in one iteration."""
        for number in numbers:
            self.calls[number].line.end(self.calls[number])
        await asyncio.sleep(0)

    async def overloaded(self) -> World:
        """Calls come until it is an overload."""
        self.open_calls = CALLS_MIN
        while self.overload.is_over:
            self.come(*range(100))
            self.now += 0.05
            self.waiting.go_on()
            assert self.now < 110
        return self


async def answer(_raw: bytes, _context: object) -> bytes:
    return b""


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(native_lines, "PLACES", AT_ONCE)
    monkeypatch.setattr(native_lines, "REFUSED_AT_ONCE", REFUSED)
    # It is of real time: a test that is held up for as long would see calls begin.
    monkeypatch.setattr(native_lines, "IDLE_SECONDS", 3_600)
    world = World()
    yield world
    world.waiting.take_all()  # else it would look for room as long as the loop runs


@pytest.fixture
def timer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The timer that looks whether the loop has nothing to do fires as usual."""
    monkeypatch.setattr(native_lines, "IDLE_SECONDS", IDLE_SECONDS)


async def test_few_calls_begin_at_once(world: World) -> None:
    world.come(1, 2)
    world.come(3)
    assert world.begun == [1, 2, 3]


async def test_as_others_end_calls_begin_in_their_order(world: World) -> None:
    world.come(*range(7))
    assert world.begun == [0, 1, 2]
    await world.end(1)
    assert world.begun == [0, 1, 2, 3]
    await world.end(0, 2)
    assert world.begun == [0, 1, 2, 3, 4, 5]
    await world.end(3, 4, 5)
    assert world.begun == [*range(7)]
    assert not len(world.waiting)


async def test_those_who_come_later_wait_behind_them(world: World) -> None:
    world.come(*range(4))
    world.come(4, 5)
    assert world.begun == [0, 1, 2]
    await world.end(0, 1, 2)
    assert world.begun == [*range(6)]


@pytest.mark.usefixtures("timer")
async def test_more_begin_while_the_loop_has_nothing_to_do(world: World) -> None:
    """What is served waits for a slow disk, or for jobs: these would wait for no reason."""
    world.come(*range(10))
    assert world.begun == [0, 1, 2]
    for _ in range(10):
        await world.beginnings.acquire()
    assert world.begun == [*range(10)]
    assert world.waiting.serving() == 10


@pytest.mark.usefixtures("timer")
async def test_none_begin_while_the_loop_is_busy(world: World) -> None:
    world.step = IDLE_SECONDS + IDLE_LATE_SECONDS
    world.come(*range(10))
    began = world.now
    while world.now < began + COUNTED_SECONDS / 2:  # noqa: ASYNC110  # it is the timer that looks
        await asyncio.sleep(IDLE_SECONDS)
    assert world.begun == [0, 1, 2]


@pytest.mark.usefixtures("timer")
async def test_while_calls_wait_threads_get_the_interpreter_soon(world: World) -> None:
    """Else the loop, which always has something to do then, keeps it from the commits."""
    before = sys.getswitchinterval()
    world.step = IDLE_SECONDS + IDLE_LATE_SECONDS
    world.come(*range(4))
    assert sys.getswitchinterval() < before / 2
    await world.end(0)
    while sys.getswitchinterval() < before:  # noqa: ASYNC110  # it is the timer that looks
        await asyncio.sleep(IDLE_SECONDS)
    world.come(*range(10, 20))
    assert sys.getswitchinterval() < before / 2
    world.waiting.take_all()
    assert sys.getswitchinterval() == before


async def test_a_call_that_lasts_is_counted_no_more(world: World) -> None:
    """Long polls and operators' calls: in an overload nothing else would be served."""
    world.come(1, 2)
    world.now += COUNTED_SECONDS / 2
    world.come(3)
    assert world.waiting.serving() == 3
    world.now += COUNTED_SECONDS / 2
    assert world.waiting.serving() == 1
    await world.end(1, 3)
    assert world.waiting.serving() == 0
    world.come(*range(10, 14))
    assert world.begun == [1, 2, 3, 10, 11, 12]


@pytest.mark.parametrize("is_slow", [False, True])
async def test_calls_that_never_wait_leave_nothing(world: World, is_slow: bool) -> None:
    """Health, for weeks, whether they overlap or not."""
    before: list[NativeCall] = []
    for number in range(1_000):
        call = NativeCall("/a.B/Check", answer, "peer", world.waiting)
        world.waiting.begin(Waiting(number, 0, call, b"", world.now))
        for ended in before if is_slow else [call]:
            world.waiting.end(ended)
        before = [call]
        world.now += TOGETHER_SECONDS
    assert len(world.waiting._batches) <= 2 * COUNTED_SECONDS / TOGETHER_SECONDS
    assert world.waiting.serving() == is_slow


async def test_what_waits_has_a_bound_in_bytes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is over it begins, so that admission refuses it: that counts only what began."""
    monkeypatch.setattr(native_lines, "WAITING_BYTES_MAX", 110)
    calls = world.come(*range(6), raw=bytes(20))
    assert world.begun == [5, 0, 1]
    world.waiting.give_up(calls[3])
    await world.end(0, 1, 5)
    assert world.begun == [5, 0, 1, 2, 4]
    world.come(*range(10, 15), raw=bytes(20))
    assert world.begun[5:] == [10]


async def test_a_call_that_was_given_up_never_begins(world: World) -> None:
    calls = world.come(*range(6))
    world.waiting.give_up(calls[4])
    assert len(world.waiting) == 2
    await world.end(0, 1, 2)
    assert world.begun == [0, 1, 2, 3, 5]
    assert not world.refused


async def test_in_an_overload_those_who_wait_are_refused(world: World) -> None:
    """Each but the one that was given up: they would keep others waiting."""
    await world.overloaded()
    world.waiting.give_up(world.calls[99])
    begun = len(world.begun)
    while len(world.waiting):  # noqa: ASYNC110  # iterations of the loop are what it is about
        await asyncio.sleep(0)
    assert world.refused[-1] == 98
    assert len(world.begun) == begun


async def test_many_are_refused_some_in_each_iteration(world: World) -> None:
    """Or thousands of refusals would hold up streams and health for tenths of a second."""
    await world.overloaded()
    refused = [len(world.refused)]
    while len(world.waiting):
        await asyncio.sleep(0)
        refused.append(len(world.refused))
    assert refused[0] == REFUSED
    assert all(after - before <= REFUSED for before, after in pairwise(refused))


async def test_a_port_where_nobody_waits_hides_no_overload_of_another(world: World) -> None:
    """Its calls begin as they come, however many wait elsewhere."""
    world.open_calls = CALLS_MIN
    other = world.port()
    while world.overload.is_over:
        world.come(*range(100))
        world.now += 0.05
        world.come(1_000, port=other)
        other.end(world.calls[1_000])
        world.waiting.go_on()
        assert world.now < 110
    assert world.begun[-1] == 1_000
    assert 1_000 not in world.refused


async def test_settles_wait_for_each_other_alone_and_are_never_refused(world: World) -> None:
    """Any number of them would keep others from beginning, which would not even be late."""
    settles = world.settles()
    world.come(*range(200, 207), port=settles)
    world.come(10, 11)
    assert world.begun == [200, 201, 202, 10, 11]
    assert (settles.unanswered(), world.waiting.unanswered()) == (7, 2)
    world.overload.is_over = False
    await world.end(200, 201)
    assert world.begun[-2:] == [203, 204]
    assert settles.unanswered() == 5
    assert not {*world.refused} & {*range(200, 207)}


async def test_at_a_stop_nothing_more_begins(world: World) -> None:
    calls = world.come(*range(9))
    world.waiting.give_up(calls[8])
    left = [one.number for one in world.waiting.take_all()]
    await asyncio.sleep(0)
    assert left == [3, 4, 5, 6, 7]
    assert world.begun == [0, 1, 2]
