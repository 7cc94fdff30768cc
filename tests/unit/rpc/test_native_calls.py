"""Calls that wait until they begin: in their order, some in each iteration of the loop."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from jobline_server.rpc import native_calls
from jobline_server.rpc.native_calls import NativeCall, Waiting, WaitingCalls
from jobline_server.rpc.overload import CALLS_MIN, Overload
from jobline_server.telemetry.calls import CallMeters

AT_ONCE = 3
REFUSED = 5


class World:
    """Calls that come, and what became of them, by their numbers."""

    def __init__(self) -> None:
        self.now = 100.0
        self.begun: list[int] = []
        self.refused: list[int] = []
        self.open_calls = 0
        self.overload = Overload(CallMeters(), lambda: self.now)
        self.waiting = self.port()

    def port(self) -> WaitingCalls:
        """The calls of one more port."""
        return WaitingCalls(
            self.overload,
            lambda one: self.begun.append(one.number),
            lambda calls: self.refused.extend(one.number for one in calls),
            lambda: self.open_calls,
        )

    def come(self, *numbers: int, port: WaitingCalls | None = None) -> dict[int, NativeCall]:
        """So many calls come in one batch."""
        waiting = self.waiting if port is None else port
        calls = {number: NativeCall("/a.B/C", answer, "peer") for number in numbers}
        for number, call in calls.items():
            waiting.add(Waiting(number, 0, call, b"", self.now))
        waiting.go_on()
        return calls


async def answer(_raw: bytes, _context: object) -> bytes:
    return b""


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(native_calls, "BEGUN_AT_ONCE", AT_ONCE)
    monkeypatch.setattr(native_calls, "REFUSED_AT_ONCE", REFUSED)
    return World()


async def test_few_calls_begin_at_once(world: World) -> None:
    world.come(1, 2)
    world.come(3)
    assert world.begun == [1, 2, 3]


async def test_many_calls_begin_in_their_order_some_in_each_iteration(world: World) -> None:
    world.come(*range(7))
    assert world.begun == [0, 1, 2]
    await asyncio.sleep(0)
    assert world.begun == [0, 1, 2, 3, 4, 5]
    await asyncio.sleep(0)
    assert world.begun == [*range(7)]
    assert not len(world.waiting)


async def test_those_who_come_later_wait_behind_them(world: World) -> None:
    """And an iteration begins its share once, however many batches come in it."""
    world.come(*range(4))
    world.come(4, 5)
    assert world.begun == [0, 1, 2]
    await asyncio.sleep(0)
    assert world.begun == [*range(6)]


async def test_a_call_that_was_given_up_never_begins(world: World) -> None:
    calls = world.come(*range(6))
    world.waiting.give_up(calls[4])
    assert len(world.waiting) == 2
    await asyncio.sleep(0)
    assert world.begun == [0, 1, 2, 3, 5]
    assert not world.refused


async def test_in_an_overload_those_who_wait_are_refused(world: World) -> None:
    """Each but the one that was given up: they would keep others waiting."""
    world.open_calls = CALLS_MIN
    while world.overload.is_over:
        calls = world.come(*range(100))
        world.waiting.give_up(calls[99])
        world.now += 0.05
        await asyncio.sleep(0)
        assert world.now < 110
    begun = len(world.begun)
    while len(world.waiting):  # noqa: ASYNC110  # iterations of the loop are what it is about
        await asyncio.sleep(0)
    assert world.refused[-1] == 98
    assert len(world.begun) == begun


async def test_many_are_refused_some_in_each_iteration(world: World) -> None:
    """Or thousands of refusals would hold up streams and health for tenths of a second."""
    world.open_calls = CALLS_MIN
    while world.overload.is_over:
        world.come(*range(100))
        world.now += 0.05
        await asyncio.sleep(0)
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
        await asyncio.sleep(0)
        assert world.now < 110
    assert world.begun[-1] == 1_000
    assert 1_000 not in world.refused


async def test_at_a_stop_nothing_more_begins(world: World) -> None:
    calls = world.come(*range(9))
    world.waiting.give_up(calls[8])
    left = [one.number for one in world.waiting.take_all()]
    await asyncio.sleep(0)
    assert left == [3, 4, 5, 6, 7]
    assert world.begun == [0, 1, 2]
