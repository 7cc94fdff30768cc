"""Waiting for jobs that are deleted, and for many."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Awaitable, Callable, Iterable

import pytest

from jobline_server.engine.commands import Push
from jobline_server.engine.endings import Ended
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, EndReason
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit, Selection
from jobline_server.runtime.watch import waits
from jobline_server.runtime.watch.wait_index import WaitIndex
from tests.unit.runtime.commits.test_commits import a_pull
from tests.unit.runtime.ended.test_many_ids import committed

AUDIT = Audit("operator", "a test")


async def push(runtime: Runtime, jobs: int, level: AckLevel = AckLevel.BUFFERED) -> list[int]:
    """Jobs of one lot; returns their ids."""
    payloads = Payloads.of([b"x"] * jobs)
    pushed = await runtime.pushes.push(
        Push("mail", DEFAULT_OPTIONS, payloads=payloads, level=level)
    )
    await runtime.core.commits.commit_once()
    return list(range(pushed.first_id, pushed.first_id + jobs))


async def delete(runtime: Runtime, ids: list[int]) -> None:
    """By hand."""
    await runtime.bulk.delete_jobs(Selection(ids=tuple(ids)), dry_run=False, audit=AUDIT)


async def drain(runtime: Runtime, _ids: list[int]) -> None:
    """All that waits."""
    await runtime.queues.drain_queue("mail", dry_run=False, audit=AUDIT)


async def delete_queue(runtime: Runtime, _ids: list[int]) -> None:
    """With what it holds; what waits is drained first."""
    await runtime.queues.delete_queue("mail", force=True, dry_run=False, audit=AUDIT)


Delete = Callable[[Runtime, list[int]], Awaitable[None]]


@pytest.mark.parametrize("deleted", [delete, drain, delete_queue])
@pytest.mark.parametrize("level", [AckLevel.BUFFERED, AckLevel.MEMORY])
async def test_a_wait_ends_when_its_jobs_are_deleted(
    runtime: Runtime, deleted: Delete, level: AckLevel
) -> None:
    """Trial B3: waiters are notified at once, with the reason, however jobs were deleted."""
    ids = await push(runtime, 3, level)
    seen: list[tuple[int, Ended | None]] = []

    async def wait() -> None:
        async for part in runtime.waits.wait(ids, 60_000):
            seen.extend(part)

    waiting = asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    await committed(runtime, asyncio.ensure_future(deleted(runtime, ids)))
    async with asyncio.timeout(5):
        await waiting
    assert [(job_id, end and (end.state, end.reason)) for job_id, end in seen] == [
        (job_id, (None, EndReason.DELETED)) for job_id in ids
    ]


async def test_a_wait_is_told_that_the_queue_of_an_active_job_is_deleted(runtime: Runtime) -> None:
    """Trial B3: jobs deleted with their queue have that reason."""
    (job_id,) = await push(runtime, 1)
    assert (await a_pull(runtime)).count() == 1
    waiting = asyncio.ensure_future(anext(runtime.waits.wait([job_id], 60_000)))
    await asyncio.sleep(0)
    await committed(runtime, asyncio.ensure_future(delete_queue(runtime, [])))
    ((told_id, end),) = await waiting
    assert told_id == job_id
    assert isinstance(end, Ended)
    assert (end.state, end.reason) == (None, EndReason.QUEUE_DELETED)


async def test_an_id_that_is_waited_for_takes_a_hundred_bytes(runtime: Runtime) -> None:
    """Trial E7: ten thousand ids a caller, ten callers."""
    first_ids = [(await push(runtime, 10_000))[0] for _ in range(10)]
    tracemalloc.start()
    try:
        waiting = []
        for first_id in first_ids:
            waits = runtime.waits.wait(list(range(first_id, first_id + 10_000)), 60_000)
            waiting.append(asyncio.ensure_future(anext(waits)))
            await asyncio.sleep(0)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert taken <= 100 * 100_000


class Counted:
    """A waiter that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return self is other

    def __hash__(self) -> int:
        return id(self) >> 4


def test_a_waiter_costs_the_same_among_many() -> None:
    """Trial E7: six hundred waiters of the same jobs are not compared one by one."""
    index: WaitIndex[Counted] = WaitIndex()
    ids = range(100)
    waiters = [Counted() for _ in range(600)]
    for waiter in waiters:
        index.add(ids, waiter)
    for waiter in waiters[:-1]:
        index.remove(ids, waiter)
    assert Counted.compared <= 2 * len(ids) * len(waiters)
    assert index.take(5) == (waiters[-1],)
    index.remove(ids, waiters[-1])
    assert len(index) == 0


async def test_many_callers_that_go_at_once_are_forgotten_one_by_one(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial E7: a broken connection with many waiters of many jobs does not block the loop."""
    ids = await push(runtime, 200)
    removed: list[int] = []
    iteration = 0
    remove = WaitIndex.remove

    def noted(self: WaitIndex[object], of: Iterable[int], waiter: object) -> None:
        removed.append(iteration)
        remove(self, of, waiter)

    monkeypatch.setattr(WaitIndex, "remove", noted)

    async def wait() -> None:
        async for _ in runtime.waits.wait(ids, 60_000):
            pass

    callers = [asyncio.create_task(wait()) for _ in range(20)]
    await asyncio.sleep(0)
    for caller in callers:
        caller.cancel()
    while len(removed) < len(callers):
        await asyncio.sleep(0)
        iteration += 1

    assert len(set(removed)) == len(callers)
    assert not runtime.waits._waiting


async def test_many_ids_are_noted_some_at_a_time(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial E7: ten thousand ids of a caller are not one step of the loop; what ends before its id
    is added is notified all the same.
    """
    monkeypatch.setattr(waits, "SLICE_IDS", 3)
    ids = await push(runtime, 10)
    seen: list[int] = []

    async def wait() -> None:
        async for part in runtime.waits.wait(ids, 60_000):
            seen.extend(job_id for job_id, _ in part)

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    assert len(runtime.waits._waiting) == 3
    await committed(runtime, asyncio.create_task(delete(runtime, ids)))
    await committed(runtime, waiting)
    assert sorted(seen) == ids
