"""When calls are refused because the server cannot keep up, and when they only seem late."""

from __future__ import annotations

import pytest

from jobline_server.rpc import overload
from jobline_server.rpc.overload import (
    AGAIN_CALLS_MIN,
    AGAIN_IN_SECONDS,
    AGAIN_SECONDS,
    ALL_LATE_SECONDS,
    CALLS_MIN,
    CALM_SECONDS,
    CALM_SECONDS_MAX,
    GROWING_CALLS_MIN,
    LATE_SECONDS,
    LONG_SECONDS,
    SERVED_MAX,
    SERVED_MIN,
    Lateness,
    Overload,
)
from jobline_server.telemetry.calls import CallMeters

PUSH = "/jobline.v1.JobService/Push"


class World:
    """A clock, and calls that come 10 ms apart."""

    def __init__(self) -> None:
        self.now = 100.0
        self.meters = CallMeters()
        self.overload = Overload(self.meters, lambda: self.now)
        self.lateness = Lateness()

    def next_begins(self, waited: float, open_calls: int = CALLS_MIN) -> bool:
        """The next call begins, which came some time ago."""
        self.now += 0.01
        return self.overload.begins(self.lateness, self.now - waited, lambda: open_calls)

    def room(self, waited: float = 0.001, serving: int = 0, is_behind: bool = False) -> int:
        self.now += 0.01
        return self.overload.room(self.now - waited, serving, lambda: is_behind)

    def overloaded(self) -> World:
        """After calls were late for long."""
        began = self.now
        while not self.next_begins(0.05):
            assert self.now < began + 1
        return self


def test_it_is_overload_once_calls_have_been_late_for_long() -> None:
    world = World()
    first = [world.next_begins(0.05) for _ in range(round(ALL_LATE_SECONDS / 0.01))]
    assert not any(first)
    assert any(world.next_begins(0.05) for _ in range(3))
    assert not world.overload.is_over


def test_one_long_step_is_no_overload() -> None:
    """Of the loop, or of a process that stood still: the calls after it are not late."""
    world = World()
    for _ in range(20):
        assert not world.next_begins(10.0)
        world.now += 0.5
        assert not any(world.next_begins(0.001) for _ in range(20))
    assert world.overload.is_over


def test_a_crowd_that_comes_at_once_is_no_overload() -> None:
    """However long it takes to serve it: no call is late that came later."""
    world = World()
    came = world.now
    assert not any(world.next_begins(world.now - came, 10_000) for _ in range(300))
    assert not any(world.next_begins(0.001) for _ in range(20))
    assert world.overload.is_over


def test_a_slow_loop_hides_no_overload() -> None:
    """Where it has little of the processor, time passes between two calls that begin."""
    world = World()
    found = []
    for _ in range(6):
        world.now += 0.3
        found.append(world.next_begins(1.0))
    assert any(found)


@pytest.mark.parametrize(("fall", "is_one"), [(50, False), (5, True)])
def test_what_a_stall_has_left_is_none_if_it_is_done_soon(fall: int, is_one: bool) -> None:
    """All calls are late until then, and thousands are open; but each look finds fewer."""
    world = World()
    begun = [world.next_begins(0.4, 4_000 - fall * index) for index in range(60)]
    assert any(begun) is is_one


def test_few_callers_with_large_calls_are_no_overload() -> None:
    world = World()
    assert not any(world.next_begins(0.5, open_calls=CALLS_MIN - 1) for _ in range(200))


def test_a_few_hundred_callers_are_one_once_they_are_ever_more() -> None:
    """Callers who wait for their replies are not: all their calls are open at most."""
    world = World()
    began = world.now
    found = [world.next_begins(0.05, 100 + 30 * index) for index in range(40)]
    assert found.index(True) * 30 + 100 < CALLS_MIN / 2
    assert world.now - began < 0.5


def test_those_of_a_flood_that_the_server_can_nearly_do_are_one_soon() -> None:
    """A tenth more than it does, of which each call waits a little longer than the one before."""
    world = World()
    began = world.now
    found = [world.next_begins(0.05, 400 + 15 * index) for index in range(30)]
    assert any(found)
    assert found.index(True) * 15 + 400 < 0.8 * CALLS_MIN
    assert world.now - began < 0.5


@pytest.mark.parametrize("growth", [0, 2])
def test_they_are_none_while_they_are_as_many_as_before(growth: int) -> None:
    world = World()
    found = [world.next_begins(0.05, 500 + growth * index) for index in range(200)]
    assert not any(found)


def test_a_crowd_that_grew_before_it_was_late_is_none() -> None:
    world = World()
    found = [world.next_begins(0.05, 900) for _ in range(50)]
    world.next_begins(0.001, 10)
    found += [world.next_begins(0.05, 900) for _ in range(50)]
    assert not any(found)


def test_in_an_overload_as_many_are_accepted_as_are_done_soon() -> None:
    world = World().overloaded()
    assert world.room(serving=SERVED_MAX - 10) == 10
    assert world.room(serving=SERVED_MAX) == 0
    assert world.room(serving=SERVED_MAX + 50) == 0


@pytest.mark.parametrize(("waited", "is_behind"), [(LATE_SECONDS, False), (0.001, True)])
def test_a_few_are_served_however_many_are_refused(waited: float, is_behind: bool) -> None:
    """Else callers that go on at that rate would have nothing served at all."""
    world = World().overloaded()
    assert world.room(waited, 0, is_behind) == SERVED_MIN
    assert world.room(waited, SERVED_MIN, is_behind) == 0


def test_it_is_over_after_some_calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """And has two lines in the log, however many calls were refused."""
    lines: list[str] = []

    class Log:
        def warning(self, event: str, **_: object) -> None:
            lines.append(event)

    monkeypatch.setattr(overload, "LOG", Log())
    world = World().overloaded()
    for _ in range(100):
        world.room(serving=SERVED_MAX)
        world.overload.note(0, 1)
    for _ in range(round(CALM_SECONDS / 0.01) - 1):
        world.room()
    assert lines == ["overload: calls are refused"]
    while not world.overload.is_over:
        world.room()
        assert world.now < 104
    assert lines == ["overload: calls are refused", "no more overload"]


def lasts(world: World, refused: int, accepted: int, seconds: float = LONG_SECONDS) -> bool:
    """Whether it goes on for so long while so many are refused and accepted in 10 ms."""
    until = world.now + seconds - 0.1
    while world.now < until and not world.overload.is_over:
        world.room()
        world.overload.note(accepted, refused)
    return not world.overload.is_over


def test_it_is_over_where_the_server_does_most_of_what_comes() -> None:
    """Else bursts of calls that come at a usual rate would be refused for ever."""
    assert not lasts(World().overloaded(), refused=1, accepted=2)
    assert lasts(World().overloaded(), refused=2, accepted=3)


def test_a_server_near_its_limit_tries_in_the_end_whether_it_is_over() -> None:
    assert not lasts(World().overloaded(), refused=1, accepted=1, seconds=2 * LONG_SECONDS)
    assert lasts(World().overloaded(), refused=3, accepted=2, seconds=2 * LONG_SECONDS)


def test_it_goes_on_while_many_refused_calls_wait_to_be_told() -> None:
    """Who waits for that does not call again, so that most of what comes is accepted."""
    world = World()
    held = [0, GROWING_CALLS_MIN]
    world.overload.held += [lambda: held[0], lambda: held[1]]
    assert lasts(world.overloaded(), refused=1, accepted=2)
    held[1] = 0
    assert not lasts(world, refused=1, accepted=2)


def test_callers_who_call_again_at_once_do_not_keep_it_going() -> None:
    """However often they are refused: all of them are held or served at any time."""
    world = World()
    world.overload.held.append(lambda: GROWING_CALLS_MIN - SERVED_MAX - 1)
    world.overloaded()
    until = world.now + 2 * CALM_SECONDS
    while world.now < until and not world.overload.is_over:
        world.room(serving=SERVED_MAX)
        world.overload.note(20, 50)
    assert world.overload.is_over


def test_one_that_was_not_over_lasts_longer() -> None:
    world = World()

    def length() -> float:
        began = world.overloaded().now
        assert not lasts(world, refused=1, accepted=2)
        return round(world.now - began, 2)

    found = [length() for _ in range(6)]
    assert found == sorted(found)
    assert found[:3] == [CALM_SECONDS, 2 * CALM_SECONDS, 4 * CALM_SECONDS]
    assert found[-2:] == [CALM_SECONDS_MAX, CALM_SECONDS_MAX]
    world.now += AGAIN_SECONDS
    assert length() == CALM_SECONDS


def test_soon_after_another_few_late_calls_are_one() -> None:
    """And are no overload once those who made the last one have had time to go."""
    world = World().overloaded()
    assert not lasts(world, refused=0, accepted=1)
    assert any(world.next_begins(0.05, AGAIN_CALLS_MIN) for _ in range(10))
    assert not lasts(world, refused=0, accepted=1)
    assert not any(world.next_begins(0.05, AGAIN_CALLS_MIN - 1) for _ in range(90))
    world.now += AGAIN_SECONDS
    assert not any(world.next_begins(0.05, AGAIN_CALLS_MIN) for _ in range(100))


def test_callers_who_wait_are_none_for_long_after_one() -> None:
    """Else those of a flood that is over would leave the others refused for ever."""
    world = World()
    began = world.overloaded().now
    found = 0
    while world.now < began + 60:
        assert world.overload.is_over or not lasts(world, refused=0, accepted=1)
        found += world.next_begins(0.05, CALLS_MIN - 1)
        if world.now > began + AGAIN_IN_SECONDS + 1:
            assert world.overload.is_over
    assert found > 2


def test_it_is_over_after_a_pause() -> None:
    """Whatever was refused before that."""
    world = World().overloaded()
    assert lasts(world, refused=3, accepted=2)
    world.now += CALM_SECONDS
    world.room()
    assert world.overload.is_over


def test_refused_calls_are_counted() -> None:
    world = World().overloaded()
    world.overload.count(PUSH, 1)
    world.overload.count(PUSH, 2)
    meter = world.meters.of("jobline.v1.JobService", "Push")
    assert (world.overload.refused, meter.started, meter.in_flight) == (3, 3, 0)
    assert meter.ended == {"RESOURCE_EXHAUSTED": 3}
