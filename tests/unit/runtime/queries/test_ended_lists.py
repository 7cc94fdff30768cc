"""Pages of ended jobs, from the ended store."""

from __future__ import annotations

import asyncio
from typing import NoReturn

import pytest

from jobline_server.engine.values import EndReason, JobOptions, JobState
from jobline_server.runtime.queries import ended_lists, walks
from jobline_server.runtime.queries.ended_lists import (
    ended_query,
    fill_from_ended,
    is_search,
    views_of,
)
from jobline_server.runtime.queries.paging import PageBuilder
from jobline_server.runtime.queries.run_pages import RunPageBuilder
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import JobFilter
from jobline_server.storage.codec import blob_parts
from jobline_server.storage.ended_store import EndedPage, EndedQuery, RemoveEnded
from jobline_server.storage.sqlite.ended_store import SqliteEndedJobStore
from tests.unit.runtime.queries.test_paging import pushed, settle

ANY = JobFilter()
MINE = JobOptions(name="send", headers=(("to", "me"),))


async def completed(runtime: Runtime, *payloads: bytes, options: JobOptions = MINE) -> int:
    """Ended jobs that are not written yet; returns the first id."""
    first_id = await pushed(runtime, *payloads, options=options)
    await settle(runtime)
    return first_id


async def rot(runtime: Runtime, job_id: int) -> None:
    """The row of this job alone is damaged from now on."""
    await runtime.ended.write()
    store = runtime.ended.ended_store
    assert isinstance(store, SqliteEndedJobStore)
    sql = f"UPDATE ended SET checksum = checksum + 1 WHERE first_id = {job_id}"
    await store.database.run(lambda raw: raw.execute(sql))


async def listed(
    runtime: Runtime, wanted: JobFilter = ANY, *, after: int = 0, count: int = 100
) -> list[int]:
    builder = PageBuilder(count, with_payloads=True)
    await fill_from_ended(runtime.ended, builder, wanted, after)
    return [view.id for _, view in builder.found]


def test_a_query_has_the_conditions_that_the_store_can_check() -> None:
    """Of the states only those of ended jobs: it would find no others."""
    wanted = JobFilter(
        queue="mail",
        name="",
        states=frozenset({JobState.READY, JobState.DEAD, JobState.STALE}),
        reasons=frozenset({EndReason.TIMEOUT}),
        ended_after_ms=0,
        ended_before_ms=9,
        error_type="E",
        error_contains="x",
        headers=(("to", "me"),),
        group="acme",
        tags=frozenset({"eu"}),
        batches=frozenset({9}),
        pushed_after_ms=5,
    )
    assert ended_query(wanted, 7, 50) == EndedQuery(
        queue="mail",
        name="",
        states=frozenset({int(JobState.DEAD), int(JobState.STALE)}),
        reasons=frozenset({int(EndReason.TIMEOUT)}),
        ended_after_ms=0,
        ended_before_ms=9,
        error_type="E",
        error_contains="x",
        blob_parts=blob_parts(headers=[("to", "me")], group="acme", tags=["eu"], batches=[9]),
        after_id=7,
        limit=50,
    )


async def test_where_nothing_has_ended_nothing_is_listed(runtime: Runtime) -> None:
    """Nor where jobs live."""
    assert await listed(runtime) == []
    await pushed(runtime, b"1", b"2")
    assert await listed(runtime) == []


async def test_jobs_that_have_just_ended_are_listed_by_id_above_one(runtime: Runtime) -> None:
    """They are written first."""
    first_id = await completed(runtime, b"1", b"2", b"3")
    single = await completed(runtime, b"4")
    ids = [first_id, first_id + 1, first_id + 2, single]
    assert await listed(runtime) == ids
    assert await listed(runtime, after=first_id) == ids[1:]
    assert await listed(runtime, after=single) == []
    assert await listed(runtime, count=2) == ids[:2]
    assert await listed(runtime, JobFilter(queue="print")) == []


async def test_conditions_on_records_are_checked_page_by_page(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store does not know headers."""
    monkeypatch.setattr(ended_lists, "LOOKUP_JOBS", 1)
    for _ in range(5):
        await completed(runtime, b"x", options=JobOptions())
    mine = await completed(runtime, b"x")
    assert await listed(runtime, JobFilter(headers=MINE.headers), count=1) == [mine]


@pytest.mark.parametrize(
    "wanted",
    [
        JobFilter(tags=frozenset({"eu"})),
        JobFilter(headers=(("to", "you"),)),
        JobFilter(group="acme"),
        JobFilter(batches=frozenset({9})),
        JobFilter(pushed_after_ms=1 << 50),
        JobFilter(pushed_before_ms=5),
    ],
)
async def test_jobs_that_are_not_wanted_are_not_decoded(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, wanted: JobFilter
) -> None:
    """A search that finds nothing among a million ended jobs took 14 s of the loop: each was
    decoded, to see that it is another one.
    """
    await completed(runtime, b"1", b"2", b"3")
    await completed(runtime, b"4", options=JobOptions())

    def decode(*_: object) -> NoReturn:
        raise AssertionError("it was decoded")

    monkeypatch.setattr(ended_lists, "kept_of_part", decode)
    monkeypatch.setattr(ended_lists, "ended_run", decode)
    monkeypatch.setattr(walks, "kept_of_part", decode)
    assert await listed(runtime, wanted) == []
    builder = RunPageBuilder(100, with_payloads=False)
    await fill_from_ended(runtime.ended, builder, wanted, 0)
    assert list(builder.entries()) == []
    walk = walks.EndedWalk(runtime.core, runtime.ended, wanted)
    while not walk.is_over:
        assert await walk.next_spans() == []


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (JobFilter(), False),
        (JobFilter(queue="mail", name="send", error_contains="x", ended_after_ms=1), False),
        (JobFilter(tags=frozenset({"eu"})), True),
        (JobFilter(headers=(("to", "me"),)), True),
        (JobFilter(group="acme"), True),
        (JobFilter(batches=frozenset({9})), True),
        (JobFilter(pushed_after_ms=0), True),
        (JobFilter(pushed_before_ms=0), True),
    ],
)
def test_conditions_that_no_column_has_make_a_search(wanted: JobFilter, expected: bool) -> None:
    assert is_search(wanted) == expected


async def test_the_loop_goes_on_between_pages_that_bring_nothing(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store in memory may answer without a wait."""

    async def pages(query: EndedQuery) -> EndedPage:
        return EndedPage([], [], query.after_id + 1 if query.after_id < 5 else None)

    monkeypatch.setattr(runtime.ended.ended_store, "list", pages)
    task, beats = asyncio.ensure_future(listed(runtime)), 0
    while not task.done():
        await asyncio.sleep(0)
        beats += 1
    assert (await task, beats > 5) == ([], True)


async def test_a_page_that_is_full_asks_for_no_more(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ended_lists, "LOOKUP_JOBS", 1)
    for _ in range(4):
        await completed(runtime, b"x")
    asked: list[EndedQuery] = []
    ask = runtime.ended.ended_store.list

    async def counted(query: EndedQuery) -> object:
        asked.append(query)
        return await ask(query)

    monkeypatch.setattr(runtime.ended.ended_store, "list", counted)
    assert len(await listed(runtime, count=2)) == 2
    assert [query.limit for query in asked] == [2]
    asked.clear()
    assert len(await listed(runtime, count=3)) == 3
    assert [query.limit for query in asked] == [2, 1]


async def test_damaged_jobs_are_left_out_and_counted(runtime: Runtime) -> None:
    ids = [await completed(runtime, b"x") for _ in range(3)]
    await rot(runtime, ids[1])
    assert await listed(runtime) == [ids[0], ids[2]]
    assert runtime.ended.damage.count() == 1


async def test_parts_of_a_row_have_the_views_of_their_own_jobs(runtime: Runtime) -> None:
    """One that left the row is not shown."""
    first_id = await completed(runtime, b"1", b"2", b"3")
    await runtime.ended.write()
    store = runtime.ended.ended_store
    await store.write([RemoveEnded(first_id + 1, 1)])
    page = await store.list(ended_query(ANY, 0, 10))
    views = [
        [
            (view.id, view.payload)
            for view in views_of(part, range(part.first_id, part.first_id + part.count))
        ]
        for part in page.parts
    ]
    assert views == [[(first_id, b"1")], [(first_id + 2, b"3")]]
    assert await listed(runtime) == [first_id, first_id + 2]
