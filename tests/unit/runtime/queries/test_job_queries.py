"""A job that has just ended is somewhere at every moment: told of, listed, never "no such job"."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from jobline_server.engine.commands import LeasedRun, Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel
from jobline_server.runtime.queries.job_queries import JobQueries
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.slots import ShardSlot
from jobline_server.runtime.views import JobFilter
from jobline_server.storage.ended_store import EndedLookup
from tests.unit.runtime.commits.test_commits import a_moment, a_pull


class Ending:
    """Two leased jobs, one of which ends at a moment that a test chooses."""

    def __init__(self, runtime: Runtime, run: LeasedRun) -> None:
        self.first, self.second = run.first_id, run.first_id + 1
        self._runtime = runtime
        self._delivery = run.delivery
        self._tasks: list[asyncio.Task[Any]] = []
        self._ended = asyncio.Event()
        self._waits = asyncio.Event()
        self._wait = runtime.core.commits.wait
        runtime.core.commits.wait = self._noted_wait  # type: ignore[method-assign]  # watched

    async def end(self, job_id: int) -> None:
        """Acks a job; its commit is still to come."""
        acks = self._runtime.settle_calls.ack([job_id], [self._delivery], {})
        self._tasks.append(asyncio.ensure_future(acks))
        await a_moment()
        self._waits.clear()
        self._ended.set()

    async def committed(self) -> None:
        """Commits it."""
        await self._runtime.core.commits.commit_once()
        self._ended.clear()

    async def until_it_waits(self, task: asyncio.Task[Any]) -> None:
        """Until the job has ended and the task waits for a commit, or is over without."""
        for event in (self._ended, self._waits):
            happens = asyncio.ensure_future(event.wait())
            await asyncio.wait({task, happens}, return_when=asyncio.FIRST_COMPLETED, timeout=5)
            happens.cancel()

    async def _noted_wait(self, slot: ShardSlot | None = None) -> None:
        self._waits.set()
        await self._wait(slot)


@pytest.fixture
async def ending(runtime: Runtime) -> Ending:
    command = Push(
        "mail", DEFAULT_OPTIONS, payloads=Payloads.of([b"x", b"y"]), level=AckLevel.BUFFERED
    )
    await runtime.pushes.push(command)
    await runtime.core.commits.commit_once()
    (run,) = (await a_pull(runtime)).runs
    await runtime.core.commits.commit_once()
    return Ending(runtime, run)


async def test_who_waits_is_not_told_that_a_job_which_just_ended_never_was(
    runtime: Runtime, ending: Ending, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends while the one before it is looked up."""
    await ending.end(ending.first)
    await ending.committed()
    look = runtime.ended.ended_store.get_many
    looked = asyncio.Event()

    async def look_while_the_other_ends(job_ids: Sequence[int]) -> EndedLookup:
        await ending.end(ending.second)
        found = await look(job_ids)
        looked.set()
        return found

    monkeypatch.setattr(runtime.ended.ended_store, "get_many", look_while_the_other_ends)

    async def told() -> list[tuple[int, bool]]:
        waiting = runtime.waits.wait([ending.first, ending.second], 10_000)
        return [(job_id, end is not None) async for batch in waiting for job_id, end in batch]

    task = asyncio.ensure_future(told())
    await looked.wait()
    await a_moment()
    await ending.committed()
    assert sorted(await task) == [(ending.first, True), (ending.second, True)]


async def test_a_list_holds_a_job_whose_end_is_being_committed(
    runtime: Runtime, ending: Ending, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not live any more and not in the finished file yet."""
    look = JobQueries._live_after

    async def look_after_it_ended(*arguments: Any, **named: Any) -> Any:
        await ending.end(ending.first)
        return await look(*arguments, **named)

    monkeypatch.setattr(JobQueries, "_live_after", look_after_it_ended)
    listing = runtime.jobs.list_jobs(
        JobFilter(), page_size=9, page_token="", include_payloads=False
    )
    task = asyncio.ensure_future(listing)
    await ending.until_it_waits(task)
    await ending.committed()
    views, _ = await task
    assert [view.id for view in views] == [ending.first, ending.second]
