"""When callers are told that they are refused: at once, unless too many are."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jobline_server.rpc import native_refusals
from jobline_server.rpc.native_refusals import (
    HELD_SECONDS_MAX,
    REFUSALS_PER_SECOND,
    SAVED_SECONDS,
    TOGETHER_SECONDS,
    Refusals,
)

# What may be refused at once after some calm, and a few for how floats add up.
BURST = round(SAVED_SECONDS * REFUSALS_PER_SECOND)
ABOUT = 3


class World:
    """A loop's clock and timer, and the calls that were told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        self.told: list[int] = []
        self.timers: list[tuple[float, Any]] = []
        monkeypatch.setattr(asyncio, "get_running_loop", lambda: self)
        self.refusals = Refusals(self.told.append)

    def time(self) -> float:
        return self.now

    def call_at(self, at: float, call: Any) -> object:
        self.timers.append((at, call))
        return object()

    def refuse(self, count: int) -> None:
        began = len(self.told) + len(self.refusals)
        for number in range(began, began + count):
            self.refusals.add(number)

    def pass_time(self, seconds: float) -> None:
        until = self.now + seconds
        while self.timers and self.timers[0][0] <= until:
            self.now, call = self.timers.pop(0)
            call()
        self.now = until


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_a_few_are_told_at_once(world: World) -> None:
    for _ in range(100):
        world.refuse(REFUSALS_PER_SECOND // 100)
        world.now += 0.01
    assert len(world.told) == REFUSALS_PER_SECOND
    assert not world.timers


def test_who_is_one_too_many_of_a_burst_is_told_soon_and_in_order(world: World) -> None:
    world.refuse(2 * BURST)
    assert len(world.told) == pytest.approx(BURST, abs=ABOUT)
    world.pass_time(SAVED_SECONDS / 2)
    assert BURST * 1.3 < len(world.told) < BURST * 1.6
    world.pass_time(SAVED_SECONDS / 2 + 2 * TOGETHER_SECONDS)
    assert world.told == list(range(2 * BURST))
    assert not len(world.refusals)
    assert not world.timers


def test_nobody_waits_for_longer_than_a_second(world: World) -> None:
    world.refuse(3 * REFUSALS_PER_SECOND)
    world.pass_time(HELD_SECONDS_MAX + 2 * TOGETHER_SECONDS)
    assert world.told == list(range(3 * REFUSALS_PER_SECOND))


def test_the_oldest_is_told_where_too_many_wait(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_refusals, "HELD_MAX", 100)
    world.refuse(BURST + 1_000)
    assert len(world.refusals) == 100
    assert world.told == list(range(BURST + 900))


def test_all_are_told_as_the_port_closes(world: World) -> None:
    world.refuse(BURST + 100)
    world.refusals.tell_all()
    assert world.told == list(range(BURST + 100))
    assert not len(world.refusals)
    world.pass_time(HELD_SECONDS_MAX)
    assert len(world.told) == BURST + 100


def test_callers_who_are_gone_are_not_told_and_are_not_waited_for(world: World) -> None:
    world.refuse(2 * BURST)
    told = list(world.told)
    for number in range(2 * BURST):
        world.refusals.forget(number)
    assert not len(world.refusals)
    world.pass_time(HELD_SECONDS_MAX)
    assert world.told == told
    assert not world.timers
    world.refusals.add(-1)
    assert world.told == [*told, -1]
