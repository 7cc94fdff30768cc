"""In how many steps of the loop a call does its work."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def rounds_of(call: Coroutine[Any, Any, Any]) -> tuple[Any, int]:
    """What a call returns, and in how many steps."""
    task, rounds = asyncio.ensure_future(call), 0
    while not task.done():  # its rounds are counted
        await asyncio.sleep(0)
        rounds += 1
    return await task, rounds
