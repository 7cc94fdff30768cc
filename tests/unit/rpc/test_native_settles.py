"""Settles that wait: connections take turns, and few with many ids begin at once."""

from __future__ import annotations

import asyncio
from time import perf_counter

import pytest

from jobline_server.rpc import native_settles
from jobline_server.rpc.native_calls import NativeCall, Waiting
from jobline_server.rpc.native_settles import SettleLine

PLACES, AT_ONCE = 4, 3
BYTES = 20


async def answer(_raw: bytes, _context: object) -> bytes:
    return b""


class World:
    """A line, and the calls that began, by their numbers."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.line = SettleLine(self._serve, perf_counter)
        self.line._places = PLACES
        self.calls: list[NativeCall] = []

    async def _serve(self, number: int, _call: NativeCall, _raw: bytes) -> None:
        self.begun.append(number)

    def come(self, *peers: str, raw: bytes = bytes(BYTES)) -> None:
        """A call of each of these connections comes."""
        for peer in peers:
            call = NativeCall("/a.B/Ack", answer, peer, self.line)
            self.line.enter(Waiting(len(self.calls), 0, call, raw, 0.0))
            self.calls.append(call)

    async def end(self, *numbers: int) -> list[int]:
        """Calls end; returns those that began in the next iteration."""
        before = len(self.begun)
        for number in numbers:
            self.line.end(self.calls[number])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return self.begun[before:]


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(native_settles, "AT_ONCE", AT_ONCE)
    return World()


async def test_connections_take_turns(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sends thousands keeps only its own calls waiting."""
    monkeypatch.setattr(native_settles, "TURN_BYTES", 1)
    world.come(*["flood"] * 7, "one", "two", "flood", "one")
    assert await world.end() == [0, 1, 2, 3]
    found = [await world.end(number) for number in (0, 1, 2, 3, 4)]
    assert found == [[7], [8], [4], [10], [5]]
    assert [one.number for one in world.line.take_all()] == [6, 9]
    assert world.line.unanswered() == 4


async def test_a_turn_is_of_some_bytes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sends many ids in a call has one call while others have several."""
    monkeypatch.setattr(native_settles, "CALL_BYTES", 0)
    monkeypatch.setattr(native_settles, "TURN_BYTES", 2 * BYTES)
    world.come(*["first"] * AT_ONCE)
    world.come("large", "large", raw=bytes(3 * BYTES))
    world.come(*["small"] * 4)
    await world.end()
    left = [one.number for one in world.line.take_all()]
    assert world.begun == [0, 1, 2, 3]
    assert left == [5, 6, 4, 7, 8]


async def test_few_with_many_bytes_begin_in_an_iteration(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the others in the next ones, without a wait."""
    monkeypatch.setattr(native_settles, "BYTES_AT_ONCE", 2 * BYTES)
    world.come(*["a"] * 11)
    await world.end()
    assert await world.end(0, 1, 2, 3) == [4, 5]
    assert await world.end() == [6, 7]
    world.line.take_all()


async def test_a_call_that_was_given_up_never_begins(world: World) -> None:
    world.come(*["a"] * 8)
    await world.end()
    world.line.give_up(world.calls[4])
    assert await world.end(0) in ([], [5])
    await world.end()
    assert world.begun == [0, 1, 2, 3, 5]
    assert len(world.line) == 2
    assert [one.number for one in world.line.take_all()] == [6, 7]
