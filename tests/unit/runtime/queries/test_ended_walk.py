"""A walk over ended jobs: a page at a time, as spans of ids or with their records."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jobline_server.engine.commands import Push
from jobline_server.engine.limits import SEQUENCE_BITS
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobOptions, JobState
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.health import Health
from jobline_server.runtime.queries import walks
from jobline_server.runtime.queries.walks import EndedWalk
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import JobFilter
from jobline_server.storage.ended_store import EndedSpan
from tests.unit.runtime.commits.test_commits import a_pull
from tests.unit.runtime.conftest import opened
from tests.unit.runtime.queries.test_ended_lists import completed, rot
from tests.unit.runtime.queries.test_paging import pushed

ANY = JobFilter()
MINE = JobOptions(name="send", headers=(("to", "me"),))


async def spans(walk: EndedWalk) -> list[list[tuple[int, int]]]:
    """The rest of a walk, page by page."""
    pages = []
    while not walk.is_over:
        pages.append([(span.first_id, span.count) for span in await walk.next_spans()])
    assert await walk.next_spans() == []
    return pages


async def records(walk: EndedWalk) -> list[list[int]]:
    """The same with records, look-up by look-up."""
    found = []
    while not walk.is_over:
        found += [list(part.ids) async for part in walk.next_records()]
    return found


def a_walk(runtime: Runtime, wanted: JobFilter = ANY) -> EndedWalk:
    return EndedWalk(runtime.core, runtime.ended, wanted)


async def test_a_walk_over_no_ended_jobs_has_one_empty_page(runtime: Runtime) -> None:
    await pushed(runtime, b"x")
    assert await spans(a_walk(runtime)) == [[]]
    assert await records(a_walk(runtime)) == []


async def test_ended_jobs_come_in_pages_as_spans_of_ids(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has just ended is written first. A page may end within a row."""
    monkeypatch.setattr(walks, "PAGE_JOBS", 2)
    first_id = await completed(runtime, b"1", b"2", b"3")
    single = await completed(runtime, b"4")
    pages = await spans(a_walk(runtime))
    assert pages[:2] == [[(first_id, 2)], [(first_id + 2, 1), (single, 1)]]
    assert not any(pages[2:])


async def test_records_come_with_their_jobs_some_at_a_time(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of many jobs is cut."""
    monkeypatch.setattr(walks, "LOOKUP_JOBS", 2)
    first_id = await completed(runtime, b"1", b"2", b"3")
    single = await completed(runtime, b"4")
    assert await records(a_walk(runtime)) == [[first_id, first_id + 1], [first_id + 2, single]]
    (part, *_) = [one async for one in a_walk(runtime).next_records()]
    kept = part.kept[first_id + 1]
    assert (kept.state, kept.record.payload, part.damaged) == (
        JobState.COMPLETED,
        b"2",
        frozenset(),
    )


async def test_conditions_that_only_records_meet_are_checked_for_spans_too(
    runtime: Runtime,
) -> None:
    """A row knows neither headers nor when a job was pushed."""
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    early = await completed(runtime, b"1", b"2", options=MINE)
    clock.advance(1_000)
    late = await completed(runtime, b"3", options=JobOptions())
    for wanted, expected in (
        (JobFilter(headers=MINE.headers), [early, early + 1]),
        (JobFilter(pushed_after_ms=clock.wall_ms), [late]),
        (JobFilter(pushed_before_ms=clock.wall_ms), [early, early + 1]),
        (JobFilter(ended_after_ms=clock.wall_ms), [late]),
        (JobFilter(ended_before_ms=clock.wall_ms), [early, early + 1]),
    ):
        found = [(start, n) for page in await spans(a_walk(runtime, wanted)) for start, n in page]
        assert [start + n for start, count in found for n in range(count)] == expected
        assert [one for part in await records(a_walk(runtime, wanted)) for one in part] == expected


async def test_jobs_that_share_a_row_are_told_apart_by_when_they_ended(runtime: Runtime) -> None:
    """A row counts as ended with the last of its jobs."""
    clock = runtime.core.clock
    assert isinstance(clock, ManualClock)
    first_id = await pushed(runtime, b"1", b"2")
    (run,) = (await a_pull(runtime)).runs
    for job_id in (first_id, first_id + 1):
        runtime.settles.ack([job_id], [run.delivery], {})
        clock.advance(500)
    await runtime.core.commits.commit_once()
    later = JobFilter(ended_after_ms=clock.wall_ms - 500)
    assert await spans(a_walk(runtime)) == [[(first_id, 2)]]
    assert await spans(a_walk(runtime, later)) == [[(first_id + 1, 1)]]


async def test_damaged_jobs_are_left_out_of_a_walk_and_counted(runtime: Runtime) -> None:
    ids = [await completed(runtime, b"x") for _ in range(3)]
    await rot(runtime, ids[1])
    assert await spans(a_walk(runtime)) == [[(ids[0], 1), (ids[2], 1)]]
    assert runtime.ended.damage.count() == 1


async def test_what_ends_and_was_pushed_after_a_walk_began_is_passed_over(tmp_path: Path) -> None:
    """So it ends however much ends meanwhile; each shard has its own bound, and the looks at one
    shard's jobs are apart from those at another's.
    """
    async with opened(tmp_path, ManualClock(), shards=2) as runtime:
        queues = {runtime.core.slots.of_queue(name).number: name for name in "abcdef"}

        async def end(shard: int) -> int:
            push = Push(queues[shard], DEFAULT_OPTIONS, payloads=Payloads.of([b"x"]))
            push.level = AckLevel.BUFFERED
            await runtime.pushes.push(push)
            await runtime.core.commits.commit_once()
            (run,) = (await a_pull(runtime, queues[shard])).runs
            call = runtime.settle_calls.ack([run.first_id], [run.delivery], {})
            task = asyncio.ensure_future(call)
            await asyncio.sleep(0)
            await runtime.core.commits.commit_once()
            await task
            return run.first_id

        before = [await end(0), await end(1)]
        assert [job_id >> SEQUENCE_BITS for job_id in before] == [0, 1]
        first, second = a_walk(runtime), a_walk(runtime)
        for shard in (0, 1):
            await end(shard)
        assert [span for page in await spans(first) for span in page] == [(i, 1) for i in before]
        assert await records(second) == [[job_id] for job_id in before]


async def test_a_walk_ends_with_the_last_page_that_may_have_jobs_of_this_server(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages behind the ids of its shards have jobs that were pushed later; none are left to it if
    all shards were lost.
    """
    monkeypatch.setattr(walks, "PAGE_JOBS", 1)
    first_id = await completed(runtime, b"1")
    walk = a_walk(runtime)
    for _ in range(3):
        last_id = await completed(runtime, b"x")
    assert await walk.next_spans() == [EndedSpan("mail", JobState.COMPLETED, first_id, 1)]
    assert await walk.next_spans() == []
    assert walk.is_over
    assert last_id > first_id + 1
    slots = runtime.core.slots
    slots.close(slots[0], Health.FENCED, "another process has it")
    assert await spans(a_walk(runtime)) == [[]]
