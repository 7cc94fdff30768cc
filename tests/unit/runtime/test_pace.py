"""A call that takes long frees the loop by the clock."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from jobline_server.runtime import pace
from jobline_server.runtime.pace import SLICE_SECONDS, Pace


async def rounds_of(monkeypatch: pytest.MonkeyPatch, times: Iterator[float], rests: int) -> int:
    """How many iterations of the loop pass while a call rests so often, at these times."""
    monkeypatch.setattr(pace, "perf_counter", lambda: next(times))

    async def call() -> None:
        own = Pace()
        for _ in range(rests):
            await own.rest()

    task, rounds = asyncio.ensure_future(call()), 0
    await asyncio.sleep(0)
    while not task.done():  # rounds are counted
        await asyncio.sleep(0)
        rounds += 1
    await task
    return rounds


async def test_a_slice_that_is_not_over_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at the time costs next to nothing, an iteration of the loop more."""
    times = iter([0.0] + [SLICE_SECONDS * 0.9] * 100)
    assert await rounds_of(monkeypatch, times, 100) == 0


async def test_each_slice_has_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of others, while the call rested, is none of it."""
    begun, looks = [0.0, 10.0, 20.0], [1.0, 11.0, 20.0]
    times = iter([begun[0], looks[0], begun[1], looks[1], begun[2], looks[2]])
    assert await rounds_of(monkeypatch, times, 3) == 2
