"""Waits for an event with a time limit."""

from __future__ import annotations

import asyncio


async def is_set_by(event: asyncio.Event, deadline: float) -> bool:
    """Waits until an event is set, or the loop's time is `deadline`; returns whether it was set."""
    try:
        async with asyncio.timeout_at(deadline):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    """Waits up to `seconds` for an event; returns whether it was set."""
    return await is_set_by(event, asyncio.get_running_loop().time() + seconds)
