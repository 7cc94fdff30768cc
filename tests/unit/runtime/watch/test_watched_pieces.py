"""Pieces of a job's result in a watch of this job: for those who ask, and at the cost of nobody
else.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from jobline.v1.event_pb2 import EventKind
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.watch.feed_reader import Room
from jobline_server.runtime.watch.watch_filter import WatchFilter
from tests.unit.runtime.watch.test_feed import push, work

PARTIAL = int(EventKind.EVENT_KIND_PARTIAL)
COMPLETED = int(EventKind.EVENT_KIND_COMPLETED)


def watching(runtime: Runtime, job_id: int, *kinds: int, token: str = ""):
    wanted = WatchFilter(job_id=job_id, kinds=frozenset({PARTIAL, *kinds}))
    partials = runtime.waits.partials
    return aclosing(runtime.feed.watch(wanted, token, room=Room.RUNS, partials=partials))


async def test_pieces_come_as_they_are_sent_after_those_that_are_kept(runtime: Runtime) -> None:
    """Without a step of the token, which is that of the events."""
    job_id = await push(runtime, 1)
    partials = runtime.waits.partials
    partials.add(job_id, 7, b"early")
    async with watching(runtime, job_id) as watch:
        begun = await anext(watch)
        first = await anext(watch)
        task = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)
        partials.add(job_id, 7, b"late")
        second = await task
    assert [piece.data for piece in (*first.pieces, *second.pieces)] == [b"early", b"late"]
    assert (first.parts, second.parts) == ((), ())
    assert begun.token == first.token == second.token


async def test_the_end_of_a_job_comes_after_its_pieces(runtime: Runtime) -> None:
    job_id = await push(runtime, 1)
    async with watching(runtime, job_id, COMPLETED) as watch:
        await anext(watch)
        runtime.waits.partials.add(job_id, 7, b"all")
        await work(runtime)
        pieces, end = await anext(watch), await anext(watch)
    assert [piece.data for piece in pieces.pieces] == [b"all"]
    assert [part.run.shared.kind for part in end.parts] == [COMPLETED]


async def test_pieces_wake_no_other_watcher_and_leave_nothing(runtime: Runtime) -> None:
    """One of other jobs, of all events, or of this job without the kind."""
    job_id = await push(runtime, 1)
    feed, partials = runtime.feed, runtime.waits.partials
    everything = feed.watch(WatchFilter(), "", room=Room.RUNS)
    async with watching(runtime, job_id) as watch, aclosing(everything) as other:
        await anext(watch)
        await anext(other)
        waits = asyncio.ensure_future(anext(other))
        await asyncio.sleep(0)
        partials.add(job_id, 7, b"piece")
        assert len(feed._news) == 1
        assert [piece.data for piece in (await anext(watch)).pieces] == [b"piece"]
        assert not waits.done()
        await work(runtime)
        assert (await waits).parts
    assert not feed._own_news
    assert not partials._readers
    assert len(partials) == 0


async def test_a_watch_with_pieces_is_told_that_its_shard_is_gone(runtime: Runtime) -> None:
    """It waits by itself, and is woken all the same."""
    job_id = await push(runtime, 1)
    async with watching(runtime, job_id) as watch:
        await anext(watch)
        task = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)
        (news,) = runtime.feed._own_news
        runtime.feed.on_closed(runtime.core.slots[0])
        assert not len(news)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
