"""Operations are in the commit of what they did; those that go in slices are recorded twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobline_server.engine.operations import NEWEST, OperationQuery, OperationState
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import QueueSettings
from jobline_server.runtime.calls import operations as of_operations
from jobline_server.runtime.calls.operations import OperationView, Target
from jobline_server.runtime.calls.undoable import why_not
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import NO_AUDIT, Audit, JobFilter, Selection
from tests.unit.runtime.conftest import opened, working
from tests.unit.runtime.test_durations import push

PAUSE = Audit("ops", "repairs", "PauseQueue", "{}", "o1")
CANCEL = Audit("ops", "spam", "CancelJobs", "{}", "o2")
ALL = Selection(filter=JobFilter(queue="mail"))


@pytest.fixture
async def busy(tmp_path: Path) -> AsyncIterator[Runtime]:
    async with working(tmp_path, ManualClock()) as one:
        await push(one, "mail", payloads=Payloads.of([b"x"] * 3))
        yield one


async def found(runtime: Runtime, operation_id: str) -> OperationView:
    view = await runtime.operations.get(operation_id)
    assert view is not None
    return view


async def test_a_change_and_its_operation_are_one_commit(busy: Runtime) -> None:
    """A crash loses both or none."""
    shard = busy.core.slots.of_queue("mail").shard
    before = shard.next_offset
    await busy.queues.pause_queue("mail", PAUSE)
    assert shard.next_offset == before + 1
    view = await found(busy, "o1")
    assert (view.operation.verb, view.operation.queue) == ("PauseQueue", "mail")
    assert (view.operation.principal, view.operation.reason) == ("ops", "repairs")


async def test_what_the_server_does_by_itself_is_not_recorded(busy: Runtime) -> None:
    await busy.queues.pause_queue("mail", Audit())
    await busy.bulk.cancel_jobs(ALL, dry_run=False, audit=NO_AUDIT)
    await busy.bulk.delete_jobs(ALL, dry_run=True, audit=CANCEL)
    assert await busy.operations.find(OperationQuery()) == ([], False)


async def test_a_call_that_is_cut_short_says_so(busy: Runtime) -> None:
    """Its caller went away: what was done is counted."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def call() -> None:
        with busy.operations.running(CANCEL, Target("mail")) as running:
            running.result.count = 2
            await busy.core.commits.wait()
            begun.set()
            await go_on.wait()

    calling = asyncio.ensure_future(call())
    await begun.wait()
    assert why_not(await found(busy, "o2")) == "it goes on"
    calling.cancel()
    await asyncio.wait([calling])
    await busy.core.commits.wait()
    view = await found(busy, "o2")
    assert (view.operation.state, view.operation.count) == (OperationState.INTERRUPTED, 2)


async def test_a_stop_in_the_middle_leaves_its_begin(tmp_path: Path) -> None:
    """The begin is in the commit of the first slice."""
    clock = ManualClock()
    async with opened(tmp_path, clock) as runtime:
        with runtime.operations.running(CANCEL, Target("mail")):
            await runtime.core.commits.commit_once()
            await runtime.ended.ended_store.close()
            await runtime.core.store.close()
    async with working(tmp_path, clock) as runtime:
        view = await found(runtime, "o2")
        assert (view.operation.state, view.is_running) == (OperationState.STARTED, False)
        assert "the server stopped" in why_not(view)


async def test_an_operation_that_was_never_written_comes_from_the_journal(tmp_path: Path) -> None:
    """As after a crash just behind the commit."""
    clock = ManualClock()
    async with opened(tmp_path, clock) as runtime:
        call = runtime.queues.update_queue("mail", QueueSettings(max_attempts=5), None, PAUSE)
        waiting = asyncio.ensure_future(call)
        await asyncio.sleep(0)
        await runtime.core.commits.commit_once()
        await waiting
    async with working(tmp_path, clock) as runtime:
        assert (await found(runtime, "o1")).operation.queue == "mail"


async def test_pages_go_on_where_the_last_one_ended(
    busy: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where reads are shorter than pages, and pages are full before they are long enough."""
    monkeypatch.setattr(of_operations, "READ_OPERATIONS", 2)
    for number in range(7):
        await busy.queues.pause_queue("mail", Audit("ops", "", "PauseQueue", "", f"n{number}"))
    for size, lengths in ((3 << 20, [5, 2]), (1, [1] * 7)):
        monkeypatch.setattr(of_operations, "PAGE_BYTES_MAX", size)
        before, more, pages = NEWEST, True, []
        while more:
            page, more = await busy.operations.find(OperationQuery(before=before, limit=5))
            before = page[-1].number
            pages.append([view.operation.id for view in page])
        assert [len(page) for page in pages] == lengths
        assert [one for page in pages for one in page] == [
            f"n{number}" for number in reversed(range(7))
        ]


async def test_old_operations_are_deleted(busy: Runtime) -> None:
    for number in range(4):
        await busy.queues.pause_queue("mail", Audit("ops", "", "PauseQueue", "", f"n{number}"))
    await busy.operations.find(OperationQuery())
    assert await busy.operations.delete_old(0, 3, 100) == 1
    assert await busy.operations.get("n0") is None
    assert await busy.operations.delete_old(1 << 60, 100, 2) == 2
    assert await busy.operations.get("n3") is not None
