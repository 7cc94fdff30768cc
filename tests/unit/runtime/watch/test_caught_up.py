"""A watch that resumes hears that it has all events up to now, whatever it asked for."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.watch.feed_reader import Room
from jobline_server.runtime.watch.watch_filter import WatchFilter
from tests.unit.runtime.watch.test_feed import push
from tests.unit.runtime.watching import now_of


async def test_a_watch_that_resumes_is_told_when_it_has_caught_up(runtime: Runtime) -> None:
    """Although the last rows have no event for it: a reader of a range waits for no heartbeat."""
    begun = await now_of(runtime)
    await push(runtime, 1, queue="quiet")
    await push(runtime, 1, commits=3)
    quiet = WatchFilter(frozenset({"quiet"}))
    async with (
        asyncio.timeout(5),
        aclosing(runtime.feed.watch(quiet, begun, room=Room.RUNS)) as watch,
    ):
        answers = [await anext(watch) for _ in range(3)]
    assert [bool(answer.parts) for answer in answers] == [False, True, False]
    assert answers[-1].token == await now_of(runtime)
