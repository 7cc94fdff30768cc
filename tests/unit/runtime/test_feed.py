"""Watching: large turns in answers that clients take, and a loop that stands still for none."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine.commands import Push, RefusalKind, Refused, Rows
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel
from jobline_server.runtime import feed
from jobline_server.runtime.feed import EVENTS_AT_ONCE, EVENTS_PER_ANSWER
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import WatchFilter
from tests.unit.runtime.test_turn import a_pull

PUSHED = frozenset({int(EventKind.EVENT_KIND_PUSHED)})


async def push(runtime: Runtime, jobs: int, *, turns: int = 1) -> int:
    """Jobs in each of some turns; returns the first id."""
    ids = []
    for _ in range(turns):
        payloads = Payloads.of([b"x"] * jobs)
        command = Push("mail", DEFAULT_OPTIONS, payloads=payloads, level=AckLevel.BUFFERED)
        ids.append((await runtime.push(command)).first_id)
        await runtime.core.commits.commit_once()
    return ids[0]


async def push_one(runtime: Runtime, payload: bytes, *, alone: bool) -> None:
    """A job in a lot of its own, or with something of its own."""
    command = Push("mail", DEFAULT_OPTIONS, level=AckLevel.BUFFERED)
    if alone:
        command.rows = Rows([payload], [DEFAULT_OPTIONS])
    else:
        command.payloads = Payloads.of([payload])
    await runtime.push(command)
    await runtime.core.commits.commit_once()


async def test_a_large_turn_comes_in_answers_and_only_the_last_can_be_resumed_from(
    runtime: Runtime,
) -> None:
    """Half a turn is told again after a resume, rather than lost."""
    lengths, tokens = [], []
    async with aclosing(runtime.watch(WatchFilter(kinds=PUSHED), "")) as watch:
        begun = (await anext(watch))[1]
        await push(runtime, 2 * EVENTS_PER_ANSWER)
        async for events, token in watch:
            lengths.append(len(events))
            tokens.append(token)
            if token:
                break
    assert lengths == [EVENTS_PER_ANSWER] * 2
    assert tokens[0] == ""
    assert tokens[1] not in {"", begun}


async def test_the_loop_goes_on_while_a_watcher_finds_nothing(runtime: Runtime) -> None:
    """Neither in one large turn nor in many small ones."""
    async with aclosing(runtime.watch(WatchFilter(), "")) as watch:
        begun = (await anext(watch))[1]
    jobs, turns = EVENTS_AT_ONCE // 100, 150
    await push(runtime, EVENTS_AT_ONCE)
    await push(runtime, jobs, turns=turns)
    last = await push(runtime, 1)
    async with aclosing(runtime.watch(WatchFilter(job_id=last), begun)) as watch:
        await anext(watch)
        found = asyncio.ensure_future(anext(watch))
        rounds = 0
        while not found.done():
            await asyncio.sleep(0)
            rounds += 1
        events, _ = await found
    assert [event.job_id for event in events] == [last]
    assert rounds >= 2 + turns // 100


@pytest.mark.parametrize("alone", [False, True], ids=["lots", "single jobs"])
async def test_jobs_that_ended_are_kept_no_longer_than_their_bytes_allow(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, alone: bool
) -> None:
    """What an ack adds to the journal is small; what it keeps in memory is the job."""
    monkeypatch.setattr(feed, "BYTES_KEPT_MAX", 100_000)
    async with aclosing(runtime.watch(WatchFilter(), "")) as watch:
        begun = (await anext(watch))[1]
    for _ in range(3):
        await push_one(runtime, b"x" * 30_000, alone=alone)
    async with aclosing(runtime.watch(WatchFilter(), begun)) as watch:
        await anext(watch)
    poll = await a_pull(runtime)
    ids, deliveries = [job.id for job in poll.jobs], [job.delivery for job in poll.jobs]
    ids += [run.first_id for run in poll.runs]
    deliveries += [run.delivery for run in poll.runs]
    assert len(ids) == 3
    acking = asyncio.ensure_future(runtime.ack(ids, deliveries, {}))
    await asyncio.sleep(0)
    await runtime.core.commits.commit_once()
    assert not await acking
    with pytest.raises(Refused) as refused:
        await anext(runtime.watch(WatchFilter(), begun))
    assert refused.value.kind is RefusalKind.OFFSET_GONE


async def test_how_many_may_watch_is_not_for_the_feed_to_say(runtime: Runtime) -> None:
    """The server's setting max_watchers does."""
    watches = [runtime.watch(WatchFilter(), "") for _ in range(1_100)]
    assert len([await anext(watch) for watch in watches]) == 1_100
    for watch in watches:
        await watch.aclose()
