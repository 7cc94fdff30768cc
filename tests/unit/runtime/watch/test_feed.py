"""Watching: once and in order, in answers that clients take, and a loop that stands still for
none.
"""

from __future__ import annotations

import asyncio
import gc
from contextlib import aclosing
from types import FunctionType, ModuleType

import pytest

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.entries import Fact
from jobline_server.engine.job import Job
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.lot import Lot
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobState
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.watch import feed, kept_batches
from jobline_server.runtime.watch.feed_reader import EVENTS_TOGETHER, RUNS_AT_ONCE, Room
from jobline_server.runtime.watch.watch_filter import WatchFilter
from tests.unit.runtime.commits.test_commits import a_pull
from tests.unit.runtime.watching import EVERYTHING, events_in, now_of, seen_since

PUSHED = WatchFilter(kinds=frozenset({int(EventKind.EVENT_KIND_PUSHED)}))


async def push(
    runtime: Runtime,
    jobs: int,
    *,
    commits: int = 1,
    queue: str = "mail",
    level: AckLevel = AckLevel.BUFFERED,
) -> int:
    """Pushes jobs in each of some commits; returns the first id."""
    ids = []
    for _ in range(commits):
        command = Push(queue, DEFAULT_OPTIONS, payloads=Payloads.of([b"x"] * jobs), level=level)
        ids.append((await runtime.pushes.push(command)).first_id)
        await runtime.core.commits.commit_once()
    return ids[0]


async def push_one(runtime: Runtime, payload: bytes, *, alone: bool) -> None:
    """Pushes a job as a lot, or as a single job."""
    command = Push("mail", DEFAULT_OPTIONS, level=AckLevel.BUFFERED)
    if alone:
        command.rows = JobColumns([payload], [DEFAULT_OPTIONS])
    else:
        command.payloads = Payloads.of([payload])
    await runtime.pushes.push(command)
    await runtime.core.commits.commit_once()


async def work(runtime: Runtime) -> None:
    """Pulls up to ten jobs, and acks them."""
    poll = await a_pull(runtime)
    ids = [job.id for job in poll.jobs]
    deliveries = [job.delivery for job in poll.jobs]
    for run in poll.runs:
        ids += range(run.first_id, run.first_id + len(run.payloads))
        deliveries += [run.delivery] * len(run.payloads)
    acking = asyncio.ensure_future(runtime.settle_calls.ack(ids, deliveries, {}))
    await asyncio.sleep(0)
    await runtime.core.commits.commit_once()
    assert not await acking


async def test_each_event_is_told_once_whichever_token_a_watch_resumes_from(
    runtime: Runtime,
) -> None:
    """Trial A7: a token is the exact position, also within a run of events, and also among jobs
    that are never written.
    """
    begun = await now_of(runtime)
    await push(runtime, 3)
    await push(runtime, 2, level=AckLevel.MEMORY)
    await work(runtime)
    await push(runtime, 1, level=AckLevel.MEMORY)
    await push(runtime, 2)
    seen = await seen_since(runtime, begun)
    kinds = [kind for (kind, _), _ in seen]
    assert kinds.count("PUSHED") == 8
    assert kinds.count("LEASED") == kinds.count("COMPLETED") == 5
    for index, (_, token) in enumerate(seen):
        rest = [event for event, _ in await seen_since(runtime, token)]
        assert rest == [event for event, _ in seen[index + 1 :]]


async def test_a_watch_in_rows_is_told_the_same_as_one_in_runs(runtime: Runtime) -> None:
    """The position to resume from is the same for both."""
    begun = await now_of(runtime)
    await push(runtime, EVENTS_TOGETHER + 3)
    seen = await seen_since(runtime, begun)
    assert len(seen) == EVENTS_TOGETHER + 4
    assert [event for event, _ in await seen_since(runtime, begun, room=Room.EVENTS)] == [
        event for event, _ in seen
    ]


async def test_jobs_in_memory_are_told_from_their_push_on(runtime: Runtime) -> None:
    """Trial B10: pushed and leased, not only how they ended."""
    begun = await now_of(runtime)
    first_id = await push(runtime, 1, level=AckLevel.MEMORY)
    await work(runtime)
    seen = [event for event, _ in await seen_since(runtime, begun)]
    job = [(kind, job_id) for kind, job_id in seen if job_id == first_id]
    assert job == [("PUSHED", first_id), ("LEASED", first_id), ("COMPLETED", first_id)]


async def test_events_say_the_state_before(runtime: Runtime) -> None:
    """Trial B10: none for what was not there, else the one the job left."""
    begun = await now_of(runtime)
    await push(runtime, 1)
    await work(runtime)
    async with aclosing(runtime.feed.watch(EVERYTHING, begun, room=Room.RUNS)) as watch:
        await anext(watch)
        events = [part.run.shared for part in (await anext(watch)).parts if part.run.starts]
    states = [(event.before, event.state) for event in events]
    ready, active = JobState.READY, JobState.ACTIVE
    assert states == [(None, ready), (ready, active), (active, JobState.COMPLETED)]


async def test_heartbeats_come_whatever_else_happens(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial B1: timers that find nothing to do make no event, and events of other jobs do not
    keep a watcher from its heartbeats.
    """
    monkeypatch.setattr(feed, "HEARTBEAT_SECONDS", 0.02)
    async with aclosing(
        runtime.feed.watch(WatchFilter(frozenset({"quiet"})), "", room=Room.RUNS)
    ) as watch:
        await anext(watch)
        task = asyncio.ensure_future(anext(watch))
        while not task.done():
            runtime.core.after_decision(runtime.core.slots[0])
            await push(runtime, 1)
    assert not task.result().parts


async def test_a_quiet_watchers_token_moves_on_with_heartbeats(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial B2: a watcher that missed nothing resumes, whatever else was committed."""
    monkeypatch.setattr(kept_batches, "BATCHES_KEPT_MAX", 5)
    monkeypatch.setattr(feed, "HEARTBEAT_SECONDS", 0.0)
    quiet = WatchFilter(frozenset({"quiet"}))
    async with aclosing(runtime.feed.watch(quiet, "", room=Room.RUNS)) as watch:
        begun = (await anext(watch)).token
        for _ in range(3):
            await push(runtime, 1, commits=4)
            token = (await anext(watch)).token
    with pytest.raises(Refused):
        await seen_since(runtime, begun)
    assert await seen_since(runtime, token, quiet) == []
    first_id = await push(runtime, 1, queue="quiet")
    seen = [event for event, _ in await seen_since(runtime, token, quiet)]
    assert seen == [("QUEUE_CREATED", 0), ("PUSHED", first_id)]


async def test_events_of_a_turn_are_made_once_for_all_watchers(runtime: Runtime) -> None:
    """Trial C3: ten thousand jobs pushed together are one run, and all watchers get the same."""
    begun = await now_of(runtime)
    await push(runtime, 10_000)
    seen = []
    for _ in range(2):
        async with aclosing(runtime.feed.watch(PUSHED, begun, room=Room.RUNS)) as watch:
            await anext(watch)
            (part,) = (await anext(watch)).parts
            seen.append(part)
    assert seen[0].run is seen[1].run
    assert (seen[0].skip, seen[0].count, len(seen[0].run.starts)) == (0, 10_000, 1)


async def test_a_large_turn_comes_in_answers_that_clients_take(runtime: Runtime) -> None:
    """Each has a token that resumes within the batch."""
    lengths: list[int] = []
    async with aclosing(runtime.feed.watch(PUSHED, "", room=Room.EVENTS)) as watch:
        await anext(watch)
        await push(runtime, 2 * Room.EVENTS)
        while sum(lengths) < 2 * Room.EVENTS:
            answer = await anext(watch)
            lengths.append(len(events_in(answer)))
    assert lengths == [Room.EVENTS] * 2


async def test_the_loop_goes_on_while_a_watcher_finds_nothing(runtime: Runtime) -> None:
    """However many batches there are."""
    begun = await now_of(runtime)
    await push(runtime, 1, commits=RUNS_AT_ONCE // 2 + 10)
    last = await push(runtime, 1)
    async with aclosing(
        runtime.feed.watch(WatchFilter(job_id=last), begun, room=Room.EVENTS)
    ) as watch:
        await anext(watch)
        found = asyncio.ensure_future(anext(watch))
        rounds = 0
        while not found.done():
            await asyncio.sleep(0)
            rounds += 1
        answer = await found
    assert [event for event, _ in events_in(answer)] == [("PUSHED", last)]
    assert rounds >= 2


@pytest.mark.parametrize("alone", [False, True], ids=["lots", "single jobs"])
async def test_events_are_kept_without_their_jobs(runtime: Runtime, alone: bool) -> None:
    """Trial C3: payloads, facts and jobs are freed as without watchers; ids are packed."""
    payload = b"x" * 30_000
    begun = await now_of(runtime)
    await push_one(runtime, payload, alone=alone)
    await work(runtime)
    assert [kind for (kind, _), _ in await seen_since(runtime, begun)][-3:] == [
        "PUSHED",
        "LEASED",
        "COMPLETED",
    ]
    reached: list[object] = [runtime.feed._batches]
    seen: set[int] = set()
    while reached:
        one = reached.pop()
        if id(one) in seen or isinstance(one, type | ModuleType | FunctionType):
            continue
        seen.add(id(one))
        assert not isinstance(one, Fact | Job | Lot)
        assert one != payload
        reached += gc.get_referents(one)
    for batch in runtime.feed._batches:
        assert not any(isinstance(run.starts, list) for run in batch.runs)


async def test_events_are_kept_no_longer_than_their_bytes_allow(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts of errors may be long, and runs of ids many."""
    begun = await now_of(runtime)
    await push(runtime, 1, commits=20)
    assert len(await seen_since(runtime, begun)) == 1 + 20
    monkeypatch.setattr(kept_batches, "BYTES_KEPT_MAX", 20 * kept_batches.RUN_BYTES)
    await push(runtime, 1, commits=2)
    with pytest.raises(Refused) as refused:
        await anext(runtime.feed.watch(EVERYTHING, begun, room=Room.RUNS))
    assert refused.value.kind is RefusalKind.OFFSET_GONE


async def test_what_nobody_watches_is_not_kept(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial C3: events cost nothing after an hour without watchers, or before the first; a later
    watcher is refused as for dropped events, and never gets an empty answer.
    """
    time = Clockwork()
    monkeypatch.setattr(runtime.feed, "_time", time)
    await push(runtime, 1, commits=3)
    assert (runtime.feed.end, len(runtime.feed._batches)) == (3, 0)
    begun = await now_of(runtime)
    await push(runtime, 1, commits=300)
    assert len(runtime.feed._batches) == 300
    time.now += feed.KEPT_SECONDS
    assert len(await seen_since(runtime, begun)) == 300

    time.now += feed.KEPT_SECONDS - 1
    late = await now_of(runtime)
    await push(runtime, 1)
    assert len(await seen_since(runtime, late)) == 1

    time.now += feed.KEPT_SECONDS
    await push(runtime, 1, commits=10)
    assert not runtime.feed._batches
    for token in (begun, late):
        with pytest.raises(Refused) as refused:
            await anext(runtime.feed.watch(EVERYTHING, token, room=Room.RUNS))
        assert refused.value.kind is RefusalKind.OFFSET_GONE
    quiet = await now_of(runtime)
    time.now += 9 * feed.KEPT_SECONDS
    assert await seen_since(runtime, quiet) == []


class Clockwork:
    """A clock in seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_how_many_may_watch_is_not_for_the_feed_to_say(runtime: Runtime) -> None:
    """The server's setting max_watchers bounds them."""
    watches = [runtime.feed.watch(EVERYTHING, "", room=Room.RUNS) for _ in range(1_100)]
    assert len([await anext(watch) for watch in watches]) == 1_100
    for watch in watches:
        await watch.aclose()
