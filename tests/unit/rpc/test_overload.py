"""When calls are refused because the server cannot keep up, and when they only seem late."""

from __future__ import annotations

import pytest

from jobline_server.rpc import overload
from jobline_server.rpc.overload import (
    ALL_LATE_SECONDS,
    CALLS_MIN,
    CALM_SECONDS,
    LATE_SECONDS,
    OVERLOADED_CALLS_MAX,
    SERVED_MIN,
    Overload,
)
from jobline_server.telemetry.calls import CallMeters

MANY = CALLS_MIN


class World:
    """A clock, and calls that come 10 ms apart."""

    def __init__(self) -> None:
        self.now = 100.0
        self.meters = CallMeters()
        self.overload = Overload(self.meters, lambda: self.now)

    def take(self, waited: float, open_calls: int = MANY, serving: int = 100) -> bool:
        self.now += 0.01
        return self.overload.refuses(self.now - waited, lambda: serving, lambda: open_calls)

    def overloaded(self) -> World:
        """After calls were late for long."""
        while not self.take(0.05):
            assert self.now < 101
        return self


def test_calls_are_refused_once_they_have_been_late_for_long() -> None:
    world = World()
    first = [world.take(0.05) for _ in range(round(ALL_LATE_SECONDS / 0.01))]
    assert not any(first)
    assert world.take(0.05)
    assert not world.overload.is_over


def test_one_long_step_is_no_overload() -> None:
    """Of the loop, or of a process that stood still: the calls after it are not late."""
    world = World()
    for _ in range(20):
        assert not world.take(10.0)
        world.now += 0.5
        assert not any(world.take(0.001) for _ in range(20))
    assert world.overload.is_over


def test_few_callers_with_large_calls_are_no_overload() -> None:
    world = World()
    assert not any(world.take(0.5, open_calls=CALLS_MIN - 1) for _ in range(200))


def test_in_an_overload_as_many_are_accepted_as_are_done_soon() -> None:
    world = World().overloaded()
    assert not world.take(0.001, open_calls=OVERLOADED_CALLS_MAX - 1)
    assert world.take(0.001, open_calls=OVERLOADED_CALLS_MAX)
    assert world.take(LATE_SECONDS + 0.001, open_calls=1)


def test_a_few_are_served_however_many_are_refused() -> None:
    """Else callers that go on at that rate would have nothing served at all."""
    world = World().overloaded()
    assert not world.take(0.5, open_calls=100_000, serving=SERVED_MIN - 1)
    assert world.take(0.5, open_calls=100_000, serving=SERVED_MIN)


def test_it_is_over_after_some_calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """And has two lines in the log, however many calls were refused."""
    lines: list[str] = []

    class Log:
        def warning(self, event: str, **_: object) -> None:
            lines.append(event)

    monkeypatch.setattr(overload, "LOG", Log())
    world = World().overloaded()
    for _ in range(100):
        assert world.take(0.05)
    for _ in range(round(CALM_SECONDS / 0.01) - 1):
        assert not world.take(0.001, open_calls=1)
    assert lines == ["overload: calls are refused"]
    for _ in range(3):
        assert not world.take(0.001, open_calls=1)
    assert not world.take(0.001, open_calls=OVERLOADED_CALLS_MAX)
    assert lines == ["overload: calls are refused", "no more overload"]
