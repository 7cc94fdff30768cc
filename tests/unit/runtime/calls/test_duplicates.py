"""Watchers hear of pushes that returned jobs which were there already."""

from __future__ import annotations

from contextlib import aclosing

from jobline.v1.event_pb2 import EventKind
from jobline_server.engine.commands import Pull, Push
from jobline_server.engine.rules import JobRules
from jobline_server.engine.ties import Ties
from jobline_server.engine.unique_rule import UniqueMode, UniqueRule
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobOptions, JobState
from jobline_server.runtime.calls.pull_dedup import leases_of, runs_of
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.watch.feed_reader import Room
from jobline_server.runtime.watch.watch_filter import WatchFilter
from jobline_server.wire.event_runs import EventRun
from tests.pushed_rows import NewJob, rows_of
from tests.unit.runtime.watching import now_of, seen_since

DUPLICATES = WatchFilter(kinds=frozenset({int(EventKind.EVENT_KIND_DUPLICATE)}))


def keyed(mode: UniqueMode, name: str = "") -> NewJob:
    rules = JobRules(unique=UniqueRule(mode, 60_000))
    return NewJob(b"x", JobOptions(name=name, rules=rules), ties=Ties(unique_key="u"))


async def push(runtime: Runtime, *jobs: NewJob) -> int:
    """Pushes jobs in one call, and returns their first id when they are on disk."""
    command = Push("q", DEFAULT_OPTIONS, rows_of(jobs), level=AckLevel.BUFFERED, atomic=False)
    first_id = (await runtime.pushes.push(command)).first_id
    await runtime.core.commits.commit_once()
    return first_id


async def runs_since(runtime: Runtime, token: str) -> list[EventRun]:
    async with aclosing(runtime.feed.watch(DUPLICATES, token, room=Room.RUNS)) as watch:
        await anext(watch)
        return [part.run for part in (await anext(watch)).parts]


async def test_an_event_names_the_job_that_was_there(runtime: Runtime) -> None:
    """Its state, the name of the new one, and how its key was held; nothing for one refused."""
    token = await now_of(runtime)
    other = await push(runtime, NewJob(b"x", DEFAULT_OPTIONS, "k"))
    held = await push(runtime, keyed(UniqueMode.KEEP))
    await push(
        runtime,
        keyed(UniqueMode.EXTEND, "a"),
        NewJob(b"x", DEFAULT_OPTIONS, "k"),
        keyed(UniqueMode.KEEP, "b"),
        NewJob(b"new", DEFAULT_OPTIONS, "k2"),
        keyed(UniqueMode.REJECT),
        keyed(UniqueMode.KEEP, "c"),
    )
    found = [
        (run.shared.message, run.shared.state, list(run.starts), list(run.columns.names))
        for run in await runs_since(runtime, token)
    ]
    ready = JobState.READY
    assert found == [
        ("EXTENDED", ready, [held], ["a"]),
        ("DUPLICATE", ready, [other, held, held], ["", "b", "c"]),
    ]


async def test_a_job_that_has_ended_has_no_state(runtime: Runtime) -> None:
    job_id = await push(runtime, NewJob(b"x", DEFAULT_OPTIONS, "k"))
    ((_, delivery),) = leases_of(runs_of(await runtime.pulls.pull(Pull((("q", 1),)))))
    runtime.settles.ack([job_id], [delivery], {})
    await runtime.core.commits.commit_once()
    token = await now_of(runtime)
    await push(runtime, NewJob(b"x", DEFAULT_OPTIONS, "k"))
    (run,) = await runs_since(runtime, token)
    assert (list(run.starts), run.shared.state) == ([job_id], None)


async def test_it_is_told_after_the_push_that_it_repeats(runtime: Runtime) -> None:
    """Which may not be on disk when the second one comes."""
    token = await now_of(runtime)
    command = Push("q", DEFAULT_OPTIONS, rows_of([keyed(UniqueMode.KEEP)]))
    command.level = AckLevel.BUFFERED
    first_id = (await runtime.pushes.push(command)).first_id
    await runtime.pushes.push(command)
    assert await seen_since(runtime, token, DUPLICATES) == []
    await runtime.core.commits.commit_once()
    assert [event for event, _ in await seen_since(runtime, token, DUPLICATES)] == [
        ("DUPLICATE", first_id)
    ]


async def test_without_watchers_nothing_is_made_of_it(runtime: Runtime) -> None:
    await push(runtime, keyed(UniqueMode.KEEP))
    command = Push("q", DEFAULT_OPTIONS, rows_of([keyed(UniqueMode.KEEP)]))
    runtime.core.slots.of_queue("q").shard.notice = None  # type: ignore[method-assign, assignment]
    assert (await runtime.pushes.push(command)).count == 0
