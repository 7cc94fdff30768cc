"""Waits for an event until a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from jobline_server.runtime.waiting import (
    WOKEN_AT_ONCE,
    PacedEvent,
    is_set_by,
    is_set_by_tick,
    is_set_within,
    tick_after,
)

Wait = Callable[[asyncio.Event, float], Awaitable[bool]]


async def by(event: asyncio.Event, seconds: float) -> bool:
    return await is_set_by(event, asyncio.get_running_loop().time() + seconds)


@pytest.fixture(params=[by, is_set_within], ids=["by", "within"])
def wait(request: pytest.FixtureRequest) -> Wait:
    """Both, for so many seconds."""
    found: Wait = request.param
    return found


async def test_an_event_that_is_set_meanwhile_ends_the_wait(wait: Wait) -> None:
    event = asyncio.Event()
    waiting = asyncio.ensure_future(wait(event, 3_600))
    await asyncio.sleep(0)
    assert not waiting.done()
    event.set()
    assert await waiting


async def test_an_event_that_is_not_set_in_time_is_no_error(wait: Wait) -> None:
    async with asyncio.timeout(5):
        assert not await wait(asyncio.Event(), 0.001)


@pytest.mark.parametrize("is_set", [False, True])
async def test_a_time_that_is_over_is_enough_to_look_once(wait: Wait, *, is_set: bool) -> None:
    """A caller that wants no wait learns whether the event was set."""
    event = asyncio.Event()
    if is_set:
        event.set()
    assert await wait(event, -1) == is_set


async def test_a_caller_that_leaves_is_not_held_up_until_the_time_is_over(wait: Wait) -> None:
    """Cancelling is no timeout: it passes through."""
    waiting = asyncio.ensure_future(wait(asyncio.Event(), 3_600))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def one_iteration() -> None:
    """Lets the loop run what is ready, and what became ready with it."""
    await asyncio.sleep(0)


async def test_many_who_wait_are_woken_a_few_at_a_time() -> None:
    """All of them in the end, in their order, with the loop between."""
    event = PacedEvent()
    woken: list[int] = []

    async def wait_for_it(number: int) -> None:
        assert await event.is_set_by(asyncio.get_running_loop().time() + 3_600)
        woken.append(number)

    tasks = [asyncio.ensure_future(wait_for_it(number)) for number in range(5 * WOKEN_AT_ONCE)]
    await one_iteration()
    assert len(event) == len(tasks)
    event.set()
    assert not len(event)
    steps = []
    while len(woken) < len(tasks):
        before = len(woken)
        await one_iteration()
        steps.append(len(woken) - before)
    assert max(steps) <= WOKEN_AT_ONCE
    assert woken == list(range(len(tasks)))
    await asyncio.gather(*tasks)


async def test_a_paced_event_has_no_state() -> None:
    """Set without anybody, it wakes nobody who comes later."""
    event = PacedEvent()
    event.set()
    async with asyncio.timeout(5):
        assert not await event.is_set_by(asyncio.get_running_loop().time() + 0.001)
    assert not len(event)


async def test_who_leaves_a_paced_event_leaves_nothing() -> None:
    """Also between the set and the wake; the others are woken."""
    event = PacedEvent()
    deadline = asyncio.get_running_loop().time() + 3_600
    tasks = [asyncio.ensure_future(event.is_set_by(deadline)) for _ in range(2 * WOKEN_AT_ONCE)]
    await one_iteration()
    tasks[0].cancel()
    await one_iteration()
    assert len(event) == len(tasks) - 1
    event.set()
    tasks[-1].cancel()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert found[1:-1] == [True] * (len(tasks) - 2)
    assert not event._woken


async def test_a_paced_event_is_set_again_while_it_wakes() -> None:
    event = PacedEvent()
    deadline = asyncio.get_running_loop().time() + 3_600
    first = [asyncio.ensure_future(event.is_set_by(deadline)) for _ in range(2 * WOKEN_AT_ONCE)]
    await one_iteration()
    event.set()
    later = asyncio.ensure_future(event.is_set_by(deadline))
    await one_iteration()
    event.set()
    assert all(await asyncio.gather(*first, later))


@pytest.mark.parametrize(
    ("now", "seconds", "ends"),
    [
        (10.0, 1.0, 11.0),
        (10.003, 1.0, 11.0),
        (10.499, 1.0, 11.0),
        (10.003, 0.5, 10.5),
        (10.4, 0.5, 11.0),
        (10.3, 60.0, 70.0),
        (10.3, 0.25, 10.55),
    ],
)
def test_what_comes_again_and_again_comes_together(now: float, seconds: float, ends: float) -> None:
    """At rest a process is woken twice a second, whatever it has to look at; short times stay."""
    assert tick_after(now, seconds) == pytest.approx(ends)


async def test_an_event_is_heard_before_its_tick() -> None:
    event = asyncio.Event()
    assert not await is_set_by_tick(event, 0.001)
    event.set()
    assert await is_set_by_tick(event, 3_600.0)
