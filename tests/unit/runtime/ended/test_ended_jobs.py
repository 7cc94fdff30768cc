"""Ended jobs are found with how they ended, and changed by facts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.entries import JobsAgedOut, JobsDeleted
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, JobState
from jobline_server.runtime.commits.batches import CommittedBatch
from jobline_server.runtime.ended import ended_jobs
from jobline_server.runtime.queries import walks
from jobline_server.runtime.views import Audit, JobFilter, Selection
from jobline_server.storage.ended_store import EndedPage, EndedQuery, EndedSpan
from jobline_server.storage.store import DataLoss
from tests.pushed_rows import NewJob, rows_of
from tests.unit.background.conftest import Keeping

COMPLETED, CANCELLED, STALE = JobState.COMPLETED, JobState.CANCELLED, JobState.STALE
NOWHERE = (1 << 63) - 1


def span(ids: Sequence[int], state: JobState, queue: str = "mail") -> EndedSpan:
    return EndedSpan(queue, int(state), ids[0], len(ids))


async def test_job_is_found_with_its_state_and_outcome(keeping: Keeping) -> None:
    """A STALE job still says how it ended."""
    ended = keeping.runtime.ended
    (job_id,) = await keeping.cancel()
    kept = await ended.find(job_id)
    assert kept is not None
    assert (kept.state, kept.outcome, kept.record.id) == (CANCELLED, CANCELLED, job_id)
    assert await ended.make_stale([span([job_id], CANCELLED)]) == 1
    kept, view = await ended.find(job_id), await ended.view(job_id)
    assert kept is not None
    assert (kept.state, kept.outcome) == (STALE, CANCELLED)
    assert view is not None
    assert (view.state, view.id) == (STALE, job_id)


async def test_job_that_has_not_ended_or_is_not_there_is_not_found(keeping: Keeping) -> None:
    ended = keeping.runtime.ended
    push = Push("mail", DEFAULT_OPTIONS, payloads=Payloads.of([b"x"]))
    live = (await keeping.runtime.pushes.push(push)).first_id
    for job_id in (live, live + 100, NOWHERE):
        assert await ended.find(job_id) is None
        assert await ended.view(job_id) is None


async def test_look_up_yields_each_id_once_in_order(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In parts of a bounded number of jobs; ids of no shard come first."""
    monkeypatch.setattr(ended_jobs, "LOOKUP_JOBS", 2)
    first, second = await keeping.complete(3), await keeping.cancel(2)
    asked = [*second, *first, first[0], second[1] + 50, NOWHERE]
    found = [part async for part in keeping.runtime.ended.look_up(asked)]
    assert [list(part.ids) for part in found] == [
        [NOWHERE],
        first[:2],
        [first[2], second[0]],
        [second[1], second[1] + 50],
    ]
    states = {job_id: kept.state for part in found for job_id, kept in part.kept.items()}
    assert states == dict.fromkeys(first, COMPLETED) | dict.fromkeys(second, CANCELLED)


async def test_look_up_yields_fewer_jobs_at_a_time_that_have_many_parents(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To put back 250 jobs that have a thousand parents each took a step of 54 ms. An id without a
    job is told with those before it.
    """
    monkeypatch.setattr(ended_jobs, "LOOKUP_JOBS", 10)
    monkeypatch.setattr(ended_jobs, "PARENTS_A_JOB", 1)
    parents = await keeping.complete(7)
    ids = await cancelled_children(keeping, parents, 3)
    plain = await keeping.cancel(2)
    nobody = plain[-1] + 50
    found = [part async for part in keeping.runtime.ended.look_up([*ids, *plain, nobody])]
    assert [list(part.ids) for part in found] == [ids[:2], [ids[2], *plain, nobody]]
    assert [list(part.kept) for part in found] == [ids[:2], [ids[2], *plain]]
    assert found[0].kept[ids[0]].record.ties.parents == tuple(parents)


async def test_walk_yields_fewer_jobs_at_a_time_that_have_many_parents(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are put back as those of a look-up are."""
    monkeypatch.setattr(walks, "LOOKUP_JOBS", 10)
    monkeypatch.setattr(ended_jobs, "PARENTS_A_JOB", 1)
    ids = await cancelled_children(keeping, await keeping.complete(7), 3)
    runtime, wanted = keeping.runtime, JobFilter(states=frozenset({CANCELLED}))
    walk = walks.EndedWalk(runtime.core, runtime.ended, wanted)
    assert [list(part.ids) async for part in walk.next_records()] == [ids[:2], ids[2:]]


async def cancelled_children(keeping: Keeping, parents: list[int], count: int) -> list[int]:
    """Ended jobs that have these parents."""
    rows = rows_of([NewJob(b"c", DEFAULT_OPTIONS, ties=Ties(parents=tuple(parents)))] * count)
    first_id = (await keeping.runtime.pushes.push(Push("mail", DEFAULT_OPTIONS, rows))).first_id
    ids = list(range(first_id, first_id + count))
    chosen = Selection(ids=tuple(ids))
    await keeping.runtime.bulk.cancel_jobs(chosen, dry_run=False, audit=Audit())
    return ids


async def test_look_up_of_nothing_is_empty(keeping: Keeping) -> None:
    assert [part async for part in keeping.runtime.ended.look_up([])] == []


async def test_change_is_one_fact_per_queue_and_state(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call returns after the commit of the last; the loop is free in between."""
    monkeypatch.setattr(ended_jobs, "LOOKUP_JOBS", 1)
    ended, facts = keeping.runtime.ended, list[object]()

    def note(batches: Sequence[CommittedBatch]) -> None:
        facts.extend(fact for batch in batches for fact, _, _ in batch.applied)

    completed, cancelled = await keeping.complete(3), await keeping.cancel(2)
    other = await keeping.cancel(queue="other")
    keeping.runtime.core.listen("test", note)
    spans = [
        span(completed[:1], COMPLETED),
        span(cancelled, CANCELLED),
        span(completed[2:], COMPLETED),
        span(other, CANCELLED, "other"),
    ]
    assert await ended.make_stale(spans) == 5
    aged = [fact for fact in facts if isinstance(fact, JobsAgedOut)]
    assert [(fact.queue, fact.starts) for fact in aged] == [
        ("mail", [completed[0], completed[2]]),
        ("mail", cancelled[:1]),
        ("other", other),
    ]
    assert await ended.delete([span(other, STALE, "other")]) == 1
    (deleted,) = [fact for fact in facts if isinstance(fact, JobsDeleted)]
    assert (deleted.queue, deleted.starts, deleted.evicted) == ("other", other, False)
    assert await keeping.kept() == {
        **dict.fromkeys([completed[0], completed[2], *cancelled], STALE),
        completed[1]: COMPLETED,
    }


async def test_job_that_the_store_cannot_read_is_refused_and_counted(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, however often it is asked for."""

    async def broken(_job_ids: Sequence[int]) -> None:
        raise DataLoss("a bad page")

    (job_id,) = await keeping.cancel()
    monkeypatch.setattr(keeping.runtime.ended.ended_store, "get_many", broken)
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            await keeping.runtime.ended.find(job_id)
        assert refused.value.kind is RefusalKind.DATA_LOSS
    assert keeping.runtime.ended.damage.count() == 1


async def test_pages_of_searches_are_read_one_at_a_time(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order in which they are asked for; other lists do not wait for them."""
    ended, begun = keeping.runtime.ended, list[int]()
    goes_on = asyncio.Event()

    async def page(query: EndedQuery) -> EndedPage:
        begun.append(query.limit)
        await goes_on.wait()
        return EndedPage([], [(7, 1)], query.limit)

    monkeypatch.setattr(ended.ended_store, "list", page)
    asked = [(1, True), (2, True), (3, False), (4, True)]
    calls = [ended.page(EndedQuery(limit=limit), of_search=of_search) for limit, of_search in asked]
    tasks = list(map(asyncio.ensure_future, calls))
    for _ in range(5):
        await asyncio.sleep(0)
    assert begun == [1, 3]
    tasks[1].cancel()
    goes_on.set()
    assert [(await tasks[at]).resume_after for at in (0, 2, 3)] == [1, 3, 4]
    assert begun == [1, 3, 4]
    assert ended.damage.count() == 1
