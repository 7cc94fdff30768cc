"""Calls on many jobs go in slices of bounded work, each job once, with the loop free between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from jobline_server.engine import invariants, limits
from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import DEFAULT_OPTIONS, KEPT_STATES, AckLevel, JobState
from jobline_server.runtime import pace
from jobline_server.runtime.calls import bulk, bulk_verbs
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.ended import ended_jobs
from jobline_server.runtime.queries import walks
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit, JobFilter, Selection
from tests.pushed_rows import NewJob, rows_of
from tests.unit.runtime.commits.test_commits import a_pull
from tests.unit.runtime.conftest import working

JOBS = 6_000
QUEUE = "mail"
ALL = Selection(filter=JobFilter(queue=QUEUE))
DEAD = frozenset({JobState.DEAD})
Call = Callable[[Runtime], Coroutine[Any, Any, Any]]


@pytest.fixture
async def busy(tmp_path: Path) -> AsyncIterator[Runtime]:
    """A runtime at work."""
    async with working(tmp_path, ManualClock()) as runtime:
        yield runtime


async def push(runtime: Runtime, kind: str) -> None:
    """As many jobs as objects of their own, in lots, or each in a lot of its own."""
    each = {"singles": 1_000, "lots": 1_000, "ones": 1}[kind]
    for _ in range(JOBS // each):
        command = Push(QUEUE, DEFAULT_OPTIONS, level=AckLevel.BUFFERED)
        if kind == "singles":
            command.rows = rows_of(NewJob(b"x", DEFAULT_OPTIONS) for _ in range(each))
        else:
            command.payloads = Payloads.of([b"x"] * each)
        await runtime.pushes.push(command)
    await runtime.core.commits.wait()


LOOKS = ((Shard, "state_of"), (walks, "may_have_wanted"))


class Work:
    """How often jobs were looked at between two rounds of the loop, at most, and in all."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, looks: Sequence[tuple[object, str]] = LOOKS
    ) -> None:
        self.most = self.total = self._now = 0
        for owner, name in looks:
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any) -> Any:
            self._now += 1
            self.total += 1
            return call(*arguments)

        return counted

    async def of(self, call: Coroutine[Any, Any, Any]) -> Any:
        """Carries a call out, and looks at the work of every round."""
        task = asyncio.ensure_future(call)
        while not task.done():
            self._now = 0
            await asyncio.sleep(0)
            self.most = max(self.most, self._now)
        return await task


async def cancel(runtime: Runtime, *, dry_run: bool = False) -> Any:
    return await runtime.bulk.cancel_jobs(ALL, dry_run=dry_run, audit=Audit())


async def by_ids(runtime: Runtime) -> Any:
    views, _ = await runtime.jobs.list_jobs(
        JobFilter(), page_size=JOBS, page_token="", include_payloads=False
    )
    ids = tuple(view.id for view in reversed(views))
    return await runtime.bulk.cancel_jobs(Selection(ids=ids), dry_run=False, audit=Audit())


CALLS: dict[str, Call] = {
    "dry run": lambda runtime: cancel(runtime, dry_run=True),
    "cancel": cancel,
    "cancel by ids": by_ids,
    "drain": lambda runtime: runtime.queues.drain_queue(QUEUE, dry_run=False, audit=Audit()),
    "delete": lambda runtime: runtime.bulk.delete_jobs(ALL, dry_run=False, audit=Audit()),
    "delete queue": lambda runtime: runtime.queues.delete_queue(
        QUEUE, force=False, dry_run=False, audit=Audit()
    ),
}


@pytest.mark.parametrize("kind", ["singles", "lots", "ones"])
@pytest.mark.parametrize("name", CALLS)
async def test_every_call_on_many_jobs_yields(
    busy: Runtime, monkeypatch: pytest.MonkeyPatch, kind: str, name: str
) -> None:
    """Trials C4, E5: no step does more than a bounded number of jobs, and the cost of a job does
    not grow with their number.
    """
    await push(busy, kind)
    work = Work(monkeypatch)
    done = await work.of(CALLS[name](busy))
    assert done.count == JOBS
    assert work.most <= 9 * walks.SLICE_JOBS, "looks at jobs between two rounds of the loop"
    assert work.total <= 9 * JOBS, "looks at jobs in all"


@pytest.mark.parametrize("name", ["cancel", "cancel by ids"])
@pytest.mark.parametrize("kind", ["singles", "lots"])
async def test_a_slice_ends_by_the_clock(
    busy: Runtime, monkeypatch: pytest.MonkeyPatch, kind: str, name: str
) -> None:
    """Jobs of groups take five times as long as others: a slice of them was a step of 26 ms."""
    await push(busy, kind)
    monkeypatch.setattr(pace, "SLICE_SECONDS", 0.0)
    work = Work(monkeypatch, [(bulk_verbs, "decide_cancel")])
    assert (await work.of(CALLS[name](busy))).count == JOBS
    assert work.most == 1
    assert work.total >= JOBS // bulk.DECIDED_AT_ONCE


@pytest.mark.parametrize("kind", ["singles", "lots", "ones"])
async def test_ended_jobs_are_put_back_and_deleted_in_slices(
    busy: Runtime, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Trials C4, E5: by filter, a dry run counts what is done then."""
    await push(busy, kind)
    await cancel(busy)
    kept = Selection(filter=JobFilter(queue=QUEUE, states=KEPT_STATES))
    work = Work(monkeypatch)
    for call in (busy.bulk.retry_jobs, busy.bulk.delete_jobs):
        counted = await work.of(call(kept, dry_run=True, audit=Audit()))
        done = await work.of(call(kept, dry_run=False, audit=Audit()))
        assert counted.count == done.count == JOBS
        await cancel(busy)
    assert work.most <= 9 * walks.SLICE_JOBS
    assert busy.queues.get_queue(QUEUE).counts[JobState.CANCELLED] == 0


async def test_ended_jobs_are_read_once_to_be_put_back_and_share_commits(
    busy: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial C2: a commit for each look would take longer than the work. One for all would be
    encoded in one step.
    """
    await push(busy, "singles")
    await cancel(busy)
    kept = Selection(filter=JobFilter(queue=QUEUE, states=KEPT_STATES))
    work, commits = Work(monkeypatch, [(walks, "kept_of_part")]), busy.core.commits.commits
    monkeypatch.delattr(type(busy.ended.ended_store), "get_many")
    assert (await work.of(busy.bulk.retry_jobs(kept, dry_run=False, audit=Audit()))).count == JOBS
    assert (work.total, work.most) == (JOBS, ended_jobs.LOOKUP_JOBS)
    slices = JOBS // walks.SLICE_JOBS
    assert slices <= busy.core.commits.commits - commits <= slices + 1


@pytest.mark.parametrize("kind", ["singles", "lots", "ones"])
@pytest.mark.parametrize(
    "wanted", [JobFilter(name="none"), JobFilter(error_contains="x"), JobFilter(states=DEAD)]
)
async def test_a_list_of_nothing_yields(
    busy: Runtime, monkeypatch: pytest.MonkeyPatch, kind: str, wanted: JobFilter
) -> None:
    """Trial E5: however many jobs do not match."""
    await push(busy, kind)
    work = Work(monkeypatch)
    listing = busy.jobs.list_jobs(wanted, page_size=10, page_token="", include_payloads=False)
    assert await work.of(listing) == ([], "")
    assert work.most <= walks.LOOK_IDS


async def test_a_page_of_a_list_costs_no_walk_over_all(
    busy: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial C4: single jobs are found by id."""
    await push(busy, "singles")
    work = Work(monkeypatch)
    listing = busy.jobs.list_jobs(JobFilter(), page_size=10, page_token="", include_payloads=False)
    views, token = await work.of(listing)
    assert (len(views), int(token)) == (10, views[-1].id)
    assert work.total <= walks.LOOK_IDS


async def test_a_call_ends_though_more_comes_in_than_it_does(busy: Runtime) -> None:
    """Trial E5: what is pushed after it began is not its business."""
    await push(busy, "singles")
    task = asyncio.ensure_future(cancel(busy))
    await asyncio.sleep(0)
    payloads = Payloads.of([b"x"] * limits.PUSH_PAYLOADS_MAX)
    more = Push(QUEUE, DEFAULT_OPTIONS, payloads=payloads, level=AckLevel.MEMORY)
    until = time.monotonic() + 30
    room = limits.SERVER_WAITING_MAX - JOBS
    while not task.done() and time.monotonic() < until:
        if room >= len(payloads):
            await busy.pushes.push(more)
            room -= len(payloads)
        await asyncio.sleep(0)
    assert (await task).count == JOBS


async def test_a_caller_that_goes_away_ends_its_call_between_two_slices(busy: Runtime) -> None:
    """Trial E5: what was done stays done, and the same call again does the rest."""
    await push(busy, "singles")
    task = asyncio.ensure_future(cancel(busy))
    while not busy.queues.get_queue(QUEUE).counts[JobState.CANCELLED]:  # noqa: ASYNC110  # a slice is no event
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    done = busy.queues.get_queue(QUEUE).counts[JobState.CANCELLED]
    assert done % bulk.DECIDED_AT_ONCE == 0
    assert (await cancel(busy)).count == JOBS - done > 0


@pytest.mark.parametrize("kind", ["singles", "lots", "ones"])
async def test_a_queue_is_deleted_by_what_it_holds(
    busy: Runtime, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Trial C5: active jobs go in slices too, and the other queues of its shard are not looked
    at.
    """
    await push(busy, kind)
    other = Push("other", DEFAULT_OPTIONS, payloads=Payloads.of([b"x"] * 100))
    await busy.pushes.push(other)
    leased = await a_pull(busy, "other")
    assert leased.count() == 10
    shard = busy.core.slots.of_queue("other").shard
    work = Work(monkeypatch)
    done = await work.of(
        busy.queues.delete_queue("other", force=True, dry_run=False, audit=Audit())
    )
    assert (done.count, "other" in shard.queues) == (100, False)
    assert work.total < 10 * 100
    while (leased := await a_pull(busy, max_jobs=1_000)).count():
        await busy.core.commits.wait()
    work.total = work.most = 0
    done = await work.of(busy.queues.delete_queue(QUEUE, force=True, dry_run=False, audit=Audit()))
    assert (done.count, shard.load.live_jobs, shard.load.payload_bytes) == (JOBS, 0, 0)
    assert work.most <= 9 * walks.SLICE_JOBS
    invariants.check(shard)


async def test_a_queue_with_waiting_jobs_hands_out_none_while_it_is_deleted(busy: Runtime) -> None:
    """Trial C5: so it is not refused for active jobs when half of the others are gone."""
    await push(busy, "singles")
    task = asyncio.ensure_future(
        busy.queues.delete_queue(QUEUE, force=False, dry_run=False, audit=Audit())
    )
    await asyncio.sleep(0)
    assert (await a_pull(busy)).count() == 0
    assert (await task).count == JOBS


async def test_two_who_delete_a_queue_do_it_once(busy: Runtime) -> None:
    """Trial C5: the second finds no queue and has changed nothing; what was pushed meanwhile into a
    new queue of the name stays.
    """
    await push(busy, "singles")
    first, second = (
        asyncio.ensure_future(
            busy.queues.delete_queue(QUEUE, force=False, dry_run=False, audit=Audit())
        )
        for _ in range(2)
    )
    assert (await first).count == JOBS
    with pytest.raises(Refused) as refused:
        await second
    assert refused.value.kind is RefusalKind.QUEUE_NOT_FOUND
    await push(busy, "lots")
    assert busy.queues.get_queue(QUEUE).counts[JobState.READY] == JOBS
