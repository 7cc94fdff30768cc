"""Activity: watchers hear of work at once, and cost nothing where nothing happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from jobline_server.engine.commands import Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.watch import activity
from jobline_server.runtime.watch.activity import _WatchedQueue


async def push(runtime: Runtime, queue: str, jobs: int) -> None:
    payloads = Payloads.of([b"x"] * jobs)
    command = Push(queue, DEFAULT_OPTIONS, level=AckLevel.BUFFERED, payloads=payloads)
    await runtime.pushes.push(command)
    await runtime.core.commits.commit_once()


def next_of(answers: AsyncGenerator[bool, None]) -> asyncio.Task[bool]:
    return asyncio.ensure_future(anext(answers))


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_each_watcher_hears_when_its_own_number_is_passed(runtime: Runtime) -> None:
    """The queue may come into being meanwhile."""
    low, high = (runtime.activity.watch("mail", above) for above in (0, 5))
    assert [await anext(low), await anext(high)] == [False, False]
    first, second = next_of(low), next_of(high)

    await push(runtime, "mail", 5)
    assert await first is True
    await turns()
    assert not second.done()
    await push(runtime, "mail", 1)
    assert await second is True

    await low.aclose()
    await high.aclose()
    assert not runtime.activity._queues


async def test_work_that_comes_and_goes_is_told_once(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A queue that was without work for a moment has not become inactive."""
    monkeypatch.setattr(activity, "QUIET_SECONDS", 0.01)
    await push(runtime, "mail", 1)
    answers = runtime.activity.watch("mail", 0)
    assert await anext(answers) is True
    waiting = next_of(answers)
    watched = runtime.activity._queues["mail"]

    await turns()
    watched.update(0)
    await turns()
    watched.update(1)
    await asyncio.sleep(0.05)
    assert not waiting.done()
    watched.update(0)
    assert await waiting is False
    await answers.aclose()


async def test_a_commit_looks_only_at_watched_queues_that_it_touched(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand watchers of other queues cost it nothing."""
    looked: list[int] = []
    monkeypatch.setattr(_WatchedQueue, "update", lambda _queue, work: looked.append(work))
    watchers = [runtime.activity.watch(f"q{number}", 0) for number in range(100)]
    for watcher in watchers:
        await anext(watcher)

    await push(runtime, "q7", 3)
    await push(runtime, "other", 1)

    assert looked == [3]
    for watcher in watchers:
        await watcher.aclose()


def test_only_thresholds_that_were_passed_change() -> None:
    """Found by their order, not one by one."""
    queue = _WatchedQueue(0)
    thresholds = {jobs: queue.join(jobs) for jobs in (0, 5, 10, 20)}

    queue.update(10)
    assert {jobs: one.is_above for jobs, one in thresholds.items()} == {
        0: True,
        5: True,
        10: False,
        20: False,
    }
    queue.update(25)
    assert all(one.is_above for one in thresholds.values())
    queue.update(5)
    assert [one.is_above for one in thresholds.values()] == [True, False, False, False]
