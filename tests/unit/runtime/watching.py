"""Watching in tests: the events seen, as (kind, id), each with the token to resume after it."""

from __future__ import annotations

from contextlib import aclosing
from unittest.mock import patch

from jobline.v1.event_pb2 import EventKind
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.watch import feed
from jobline_server.runtime.watch.feed_reader import Answer, Room
from jobline_server.runtime.watch.watch_filter import WatchFilter

EVERYTHING = WatchFilter()
Seen = tuple[str, int]


def events_in(answer: Answer) -> list[tuple[Seen, str]]:
    """Returns the events of an answer one by one."""
    events: list[tuple[Seen, str]] = []
    for part in answer.parts:
        run = part.run.part(part.skip, part.count)
        kind = EventKind.Name(EventKind.ValueType(run.shared.kind)).removeprefix("EVENT_KIND_")
        ids = [
            job_id
            for start, count in zip(run.starts, run.counts, strict=True)
            for job_id in range(start, start + count)
        ]
        for number, job_id in enumerate(ids or [0], start=1):
            events.append(((kind, job_id), f"{part.begun}+{number}"))
    return events


async def now_of(runtime: Runtime) -> str:
    """Returns the token of a watch that has just begun."""
    async with aclosing(runtime.feed.watch(EVERYTHING, "", room=Room.RUNS)) as watch:
        return (await anext(watch)).token


async def seen_since(
    runtime: Runtime, token: str, wanted: WatchFilter = EVERYTHING, room: Room = Room.RUNS
) -> list[tuple[Seen, str]]:
    """Returns all events after a token."""
    end = (await now_of(runtime)).split(".")[1]
    seen: list[tuple[Seen, str]] = []
    with patch.object(feed, "HEARTBEAT_SECONDS", 0):
        async with aclosing(runtime.feed.watch(wanted, token, room=room)) as watch:
            async for answer in watch:
                seen += events_in(answer)
                if not answer.parts and answer.token.split(".")[1] == end:
                    return seen
    raise AssertionError("a watch ended by itself")
