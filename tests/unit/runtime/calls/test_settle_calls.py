"""Workers without a stream: each call is one answer, after the commit, with outcomes by index."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest

from jobline_server.engine.commands import ExtendItem, FailItem, FailResult, ReleaseItem
from jobline_server.engine.values import FailAction, JobError, JobState, SettleOutcome
from jobline_server.runtime.calls import settle_calls as settle_calls_module
from jobline_server.runtime.calls import settling as settling_module
from jobline_server.runtime.calls.pull_dedup import leases_of, runs_of
from jobline_server.runtime.calls.settle_calls import slices
from jobline_server.runtime.runtime import Runtime
from tests.unit.runtime.calls.test_pulls import pulled, pushed
from tests.unit.runtime.commits.test_commits import a_moment

T = TypeVar("T")
Lease = tuple[int, int]
Call = Callable[[Runtime, list[Lease]], Awaitable[Any]]
ERROR = JobError("E", "no such host")
ALREADY, LOST = SettleOutcome.ALREADY_DONE, SettleOutcome.LEASE_LOST
DONE, NOT_FOUND = SettleOutcome.DONE, SettleOutcome.NOT_FOUND


async def leased(runtime: Runtime, jobs: int) -> list[Lease]:
    """Leases of new jobs, which are single ones."""
    await pushed(runtime, rows=jobs, plain=0)
    found = list(leases_of(runs_of(await pulled(runtime, b"", max_jobs=jobs))))
    await runtime.core.commits.commit_once()
    return found


async def committed(runtime: Runtime, call: Coroutine[Any, Any, T]) -> T:
    """The answer of a call, after one commit and not before."""
    task = asyncio.ensure_future(call)
    await a_moment()
    assert not task.done()
    await runtime.core.commits.commit_once()
    return await task


def ack(runtime: Runtime, leases: list[Lease], **results: Any) -> Coroutine[Any, Any, Any]:
    ids, deliveries = [lease[0] for lease in leases], [lease[1] for lease in leases]
    return runtime.settle_calls.ack(ids, deliveries, results.get("results", {}))


def fail(runtime: Runtime, leases: list[Lease]) -> Coroutine[Any, Any, Any]:
    items = [FailItem(*lease, ERROR, FailAction.DEAD) for lease in leases]
    return runtime.settle_calls.fail(items)


def release(runtime: Runtime, leases: list[Lease]) -> Coroutine[Any, Any, Any]:
    return runtime.settle_calls.release([ReleaseItem(*lease) for lease in leases])


def extend(
    runtime: Runtime, leases: list[Lease], worker_checkpoint: bytes | None = None
) -> Coroutine[Any, Any, Any]:
    items = [ExtendItem(*lease, 60_000, worker_checkpoint=worker_checkpoint) for lease in leases]
    return runtime.settle_calls.extend(items)


async def state_of(runtime: Runtime, job_id: int) -> JobState:
    return (await runtime.jobs.get_job(job_id)).state


@pytest.mark.parametrize("call", [ack, fail, release, extend])
async def test_a_call_without_items_is_answered_at_once(runtime: Runtime, call: Call) -> None:
    assert await call(runtime, []) == []


async def test_an_ack_leaves_results_to_those_who_look_at_the_job(runtime: Runtime) -> None:
    first, second = await leased(runtime, 2)
    results = {second[0]: b"done"}
    assert await committed(runtime, ack(runtime, [first, second], results=results)) == []
    shown = [(await runtime.jobs.get_job(lease[0])).result for lease in (first, second)]
    assert shown == [b"", b"done"]


async def test_a_fail_is_answered_with_where_the_job_stands(runtime: Runtime) -> None:
    """Each at its index; what waits for another attempt says until when."""
    dead, retried, lost = await leased(runtime, 3)
    items = [
        FailItem(*dead, ERROR, FailAction.DEAD),
        FailItem(*retried, ERROR, retry_after_ms=5_000),
        FailItem(lost[0], 1, ERROR),
    ]
    now_ms = runtime.core.wall_ms()
    assert await committed(runtime, runtime.settle_calls.fail(items)) == [
        FailResult(DONE, JobState.DEAD),
        FailResult(DONE, JobState.SCHEDULED, now_ms + 5_000),
        FailResult(LOST),
    ]


async def test_a_release_gives_jobs_back_at_once_or_later(runtime: Runtime) -> None:
    at_once, later = await leased(runtime, 2)
    items = [ReleaseItem(*at_once), ReleaseItem(*later, delay_ms=5_000)]
    assert await committed(runtime, runtime.settle_calls.release(items)) == []
    states = [await state_of(runtime, lease[0]) for lease in (at_once, later)]
    assert states == [JobState.READY, JobState.SCHEDULED]


@pytest.mark.parametrize(
    ("call", "again"), [(ack, ALREADY), (fail, ALREADY), (release, LOST), (extend, LOST)]
)
async def test_a_call_that_comes_again_is_told_what_became_of_the_first(
    runtime: Runtime, call: Call, again: SettleOutcome
) -> None:
    """Under the same lease; a job that never was is not found. What does not end a job cannot be
    repeated on one that has ended.
    """
    first, second = await leased(runtime, 2)
    ended = fail if call is fail else ack
    await committed(runtime, ended(runtime, [first]))
    never = first[0] + 100, first[1]
    other = first[0], first[1] + 1
    answer = await call(runtime, [first, never, other])
    outcomes = [one.outcome for one in answer] if call is fail else [one for _, one in answer]
    assert outcomes == [again, NOT_FOUND, LOST]
    assert await state_of(runtime, second[0]) is JobState.ACTIVE


async def test_an_extend_waits_for_the_disk_only_with_a_checkpoint(runtime: Runtime) -> None:
    """What a worker saved must not be lost after it was told so; a lease is in memory alone."""
    leases = await leased(runtime, 2)
    assert await extend(runtime, leases) == []
    assert await committed(runtime, extend(runtime, leases, b"at 7")) == []
    view = await runtime.jobs.get_job(leases[1][0])
    assert (view.worker_checkpoint, view.lease_until_ms) == (
        b"at 7",
        runtime.core.wall_ms() + 60_000,
    )


@pytest.mark.parametrize("call", [ack, fail, release, extend])
async def test_outcomes_of_many_items_are_at_their_indexes(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    """However they are cut."""
    monkeypatch.setattr(settling_module, "ACKS_AT_ONCE", 2)
    for module in (settling_module, settle_calls_module):
        monkeypatch.setattr(module, "ITEMS_AT_ONCE", 2)
    leases = await leased(runtime, 7)
    leases[3] = leases[3][0], 1
    leases[6] = leases[6][0], 1
    task = asyncio.ensure_future(call(runtime, leases))
    while not task.done():
        await a_moment()
        await runtime.core.commits.commit_once()
    answer = await task
    if call is fail:
        answer = [(n, one.outcome) for n, one in enumerate(answer) if one.outcome is not DONE]
    assert answer == [(3, LOST), (6, LOST)]


async def test_a_caller_that_leaves_has_settled_all_the_same(runtime: Runtime) -> None:
    """What was decided is written, whoever waits for it."""
    ((job_id, delivery),) = await leased(runtime, 1)
    call = asyncio.ensure_future(ack(runtime, [(job_id, delivery)]))
    await a_moment()
    call.cancel()
    await a_moment()
    await runtime.core.commits.commit_once()
    assert call.cancelled()
    assert await state_of(runtime, job_id) is JobState.COMPLETED


@pytest.mark.parametrize(
    ("items", "lengths"), [(0, []), (1, [1]), (3, [3]), (4, [3, 1]), (7, [3, 3, 1])]
)
async def test_items_come_in_slices_with_the_loop_free_in_between(
    monkeypatch: pytest.MonkeyPatch, items: int, lengths: list[int]
) -> None:
    """Not before the first, nor after the last."""
    monkeypatch.setattr(settle_calls_module, "ITEMS_AT_ONCE", 3)

    async def take() -> list[int]:
        return [len(part) async for part in slices(range(items))]

    task, rounds = asyncio.ensure_future(take()), 0
    while not task.done():
        await asyncio.sleep(0)
        rounds += 1
    assert (await task, rounds) == (lengths, max(len(lengths), 1))
