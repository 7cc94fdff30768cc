"""Waits for an event until a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from jobline_server.runtime.waiting import is_set_by, is_set_within

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
