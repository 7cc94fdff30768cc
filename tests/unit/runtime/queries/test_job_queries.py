"""A job that has just ended is somewhere at every moment: told of, listed, never "no such job"."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from jobline_server.engine.commands import LeasedRun, Push
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobOptions
from jobline_server.runtime.queries.job_queries import JobQueries
from jobline_server.runtime.queries.walks import live_slices
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.slots import ShardSlot
from jobline_server.runtime.views import JobFilter
from jobline_server.storage.ended_store import EndedLookup
from tests.pushed_payloads import payloads_of
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
    """It is not live any more and not in the ended store yet."""
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


async def pushed_with_headers(runtime: Runtime, shared: JobOptions) -> int:
    """Four jobs of one lot, each with a header `of` of its own but for the last."""
    payloads = payloads_of([b"x"] * 4, {"of": ["a", "b", "a", ""]}, ["k0", "", "", ""])
    command = Push("mail", shared, payloads=payloads, level=AckLevel.BUFFERED)
    pushed = await runtime.pushes.push(command)
    await runtime.core.commits.commit_once()
    return pushed.first_id


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ((("of", "a"),), [0, 2]),
        ((("of", "s"),), [3]),
        ((("of", "a"), ("shared", "yes")), [0, 2]),
        ((("of", "a"), ("shared", "no")), []),
        ((("of", "z"),), []),
    ],
)
async def test_members_of_a_lot_are_found_by_their_own_headers(
    runtime: Runtime, headers: tuple[tuple[str, str], ...], found: list[int]
) -> None:
    """Live, as a list and for calls on many jobs; and ended."""
    shared = JobOptions(headers=(("of", "s"), ("shared", "yes")))
    first_id = await pushed_with_headers(runtime, shared)
    wanted, ids = JobFilter(headers=headers), [first_id + index for index in found]
    listed, _ = await runtime.jobs.first_after(wanted, 0, 9)
    assert [view.id for view in listed] == ids
    slices = [one async for one in live_slices(runtime.core.slots[0].shard, wanted)]
    assert [job_id for one in slices for job_id in one] == ids
    (run,) = (await a_pull(runtime)).runs
    acks = runtime.settle_calls.ack([first_id + i for i in range(4)], [run.delivery] * 4, {})
    task = asyncio.ensure_future(acks)
    await a_moment()
    await runtime.core.commits.commit_once()
    await task
    ended, _ = await runtime.jobs.first_after(wanted, 0, 9)
    assert [(view.id, dict(view.options.headers)["of"]) for view in ended] == [
        (job_id, headers[0][1]) for job_id in ids
    ]


async def test_a_member_of_a_lot_is_found_by_its_key(runtime: Runtime) -> None:
    """And shows it, with its headers among the lot's."""
    first_id = await pushed_with_headers(runtime, DEFAULT_OPTIONS)
    view = await runtime.jobs.get_job_by_key("mail", "k0")
    assert (view.id, view.job_key, view.options.headers) == (first_id, "k0", (("of", "a"),))
    assert (view.payload, view.payload_bytes) == (b"x", 1)
