"""Unique keys over a real server: all modes, restarts, and what others got wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from jobline import (
    AckLevel,
    AsyncClient,
    EndReason,
    EventKind,
    InvalidArgument,
    JobNotFound,
    JobState,
    NewJob,
    ObstacleKind,
    PushOutcome,
    UniqueKeyHeld,
    UniqueMode,
)
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import running_server

Out = PushOutcome


@asynccontextmanager
async def a_life(data: Path, clock: ManualClock) -> AsyncIterator[AsyncClient]:
    """One server on these files, and a client of it."""
    async with (
        running_server(data, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        yield client


async def test_each_mode_does_what_it_says(tmp_path: Path) -> None:
    async with a_life(tmp_path, ManualClock()) as client:

        async def push(key: str, mode: Any, **more: Any) -> tuple[PushOutcome, int]:
            pushed = await client.push("q", unique_key=key, unique_mode=mode, **more)
            return pushed.outcome, pushed.id

        outcomes = {}
        for mode in UniqueMode:
            start = {"delay": 60} if mode is UniqueMode.DEBOUNCE else {}
            first = await push(mode.name, mode, unique_ttl=60, **start)
            assert first[0] is Out.CREATED
            if mode is UniqueMode.REJECT:
                with pytest.raises(UniqueKeyHeld):
                    await push(mode.name, "reject")
                continue
            second = await push(mode.name, mode.name.lower(), unique_ttl=60, **start)
            is_new = second[1] != first[1]
            outcomes[mode.name] = second[0].name, is_new

        assert outcomes == {
            "KEEP": ("DUPLICATE", False),
            "REPLACE": ("REPLACED", True),
            "EXTEND": ("EXTENDED", False),
            "DEBOUNCE": ("DEBOUNCED", True),
            "THROTTLE": ("THROTTLED", False),
            "AFTER_ACTIVE": ("REPLACED", True),
            "SUPERSEDE": ("REPLACED", True),
        }


async def test_keys_and_what_waits_behind_them_outlive_the_process(tmp_path: Path) -> None:
    """G6: the holder, the job behind it and a throttle are as they were.

    Predecessors: keys are lost at a restart.
    """
    clock = ManualClock()
    async with a_life(tmp_path, clock) as client:
        held = await client.push("q", b"held", unique_key="held")
        await client.push("q", b"run", unique_key="run")
        first, running = await client.pull("q", max_jobs=2)
        behind = await client.push("q", b"behind", unique_key="run", unique_mode="supersede")
        throttled = await client.push(
            "t", b"x", unique_key="t", unique_mode="throttle", unique_ttl="1h"
        )
        (done,) = await client.pull("t")
        await client.ack(done)
    clock.advance(1_000)
    async with a_life(tmp_path, clock) as client:
        assert (await client.push("q", unique_key="held")).id == held.id
        job = await client.jobs.get(behind.id)
        assert (job.state, job.unique_key) == (JobState.BLOCKED, "run")
        again = await client.push("t", unique_key="t", unique_mode="throttle", unique_ttl="1h")
        assert (again.outcome, again.id) == (Out.THROTTLED, throttled.id)
        await client.ack(running)
        assert (await client.jobs.get(running.id)).state is JobState.CANCELLED
        assert (await client.jobs.get(behind.id)).state is JobState.READY
        await client.ack(first)
        with pytest.raises(JobNotFound):
            await client.jobs.get_by_unique_key("q", "held")
    clock.advance(3_600_000)
    async with a_life(tmp_path, clock) as client:
        assert (await client.jobs.get_by_unique_key("q", "run")).id == behind.id
        again = await client.push("t", unique_key="t", unique_mode="throttle", unique_ttl="1h")
        assert again.outcome is Out.CREATED


async def test_operators_see_keys_and_whom_a_job_waits_for(tmp_path: Path) -> None:
    async with a_life(tmp_path, ManualClock()) as client:
        holder = await client.push("q", unique_key="k", unique_mode="replace", unique_ttl=60)
        (leased,) = await client.pull("q")
        behind = await client.push("q", unique_key="k", unique_mode="replace")

        job = await client.jobs.get_by_unique_key("q", "k")
        assert (job.id, job.options.unique_mode) == (holder.id, UniqueMode.REPLACE)
        assert job.unique_until is not None
        explained = await client.jobs.explain(behind.id)
        assert [obstacle.kind for obstacle in explained.obstacles] == [ObstacleKind.KEY_HELD]
        assert f"job {holder.id} " in explained.obstacles[0].message
        await client.ack(leased)
        assert (await client.queues.get("q")).counts.ready == 1


async def test_whoever_waits_for_a_replaced_job_is_told(tmp_path: Path) -> None:
    """Predecessors: who waits for a job that is dropped waits for the timeout."""
    async with a_life(tmp_path, ManualClock()) as client:
        old = await client.push("q", unique_key="k")
        waiting = asyncio.ensure_future(client.wait_one(old.id, timeout=60))
        await client.push("q", unique_key="k", unique_mode="replace")
        end = await waiting
        assert (end.state, end.reason) == (JobState.CANCELLED, EndReason.REPLACED)


async def test_no_key_is_evicted_before_its_time_however_many_there_are(tmp_path: Path) -> None:
    """Predecessors: half of the unique keys are evicted above 1,000."""
    async with a_life(tmp_path, ManualClock()) as client:
        for _ in range(2):
            jobs = [NewJob(b"x", unique_key=f"user-{number}") for number in range(3_000)]
            parts = [jobs[start : start + 1_000] for start in (0, 1_000, 2_000)]
            pushed = [one for part in parts for one in await client.push_many("q", part)]
        assert {one.outcome for one in pushed} == {Out.DUPLICATE}
        assert (await client.queues.get("q")).counts.ready == 3_000


async def test_no_key_of_a_user_means_anything_to_the_system(tmp_path: Path) -> None:
    """Predecessors: a user's key that begins with `cron:` makes a stalled job vanish. A job key and
    a unique key of the same name are two things, too.
    """
    clock = ManualClock()
    async with a_life(tmp_path, clock) as client:
        pushed = await client.push("q", unique_key="cron:daily", job_key="_system", lease=1)
        other = await client.push("q", unique_key="_system", job_key="cron:daily")
        assert other.outcome is Out.CREATED
        await client.pull("q")
        clock.advance(5_000)
        # Lost leases are noticed within a second of the real clock.
        for _ in range(100):
            job = await client.jobs.get(pushed.id)
            if job.state is JobState.READY:
                break
            await asyncio.sleep(0.05)
        assert (job.state, job.stalls) == (JobState.READY, 1)
        assert (await client.push("q", unique_key="cron:daily")).id == pushed.id


async def test_concurrent_pushes_with_keys_of_their_own_share_calls(tmp_path: Path) -> None:
    """Keys are a column beside payloads, not a call each; refusals are told one by one."""
    async with a_life(tmp_path, ManualClock()) as client:
        taken = await client.push("q", unique_key="u7")
        pushes = [
            client.push("q", b"x", unique_key=f"u{number}", unique_mode="reject")
            for number in range(20)
        ]
        found = await asyncio.gather(*pushes, return_exceptions=True)
        refused = [number for number, one in enumerate(found) if isinstance(one, UniqueKeyHeld)]
        assert refused == [7]
        created = [one.id for one in found if not isinstance(one, BaseException)]
        assert len(set(created)) == 19
        assert taken.id not in created


async def test_jobs_with_a_unique_key_are_written_whatever_the_level(tmp_path: Path) -> None:
    async with a_life(tmp_path, ManualClock()) as client:
        pushed = await client.push("q", unique_key="k", ack_level="memory")
        assert pushed.ack_level is AckLevel.BUFFERED


async def test_what_needs_a_ttl_says_so(tmp_path: Path) -> None:
    async with a_life(tmp_path, ManualClock()) as client:
        with pytest.raises(InvalidArgument) as refused:
            await client.push("q", unique_key="k", unique_mode="throttle")
        assert refused.value.field == "options.unique_ttl"
        with pytest.raises(InvalidArgument, match="unique_key: is empty"):
            await client.push("q", unique_key="")
        await client.queues.update("q", unique_ttl=60, unique_mode="throttle")
        assert (await client.push("q", unique_key="k")).outcome is Out.CREATED
        assert (await client.push("q", unique_key="k")).outcome is Out.THROTTLED
        settings = (await client.queues.get("q")).settings
        assert settings.unique_mode is UniqueMode.THROTTLE


async def test_watchers_hear_of_pushes_that_returned_another_job(tmp_path: Path) -> None:
    """For its job key or its unique key; how is the message."""
    async with a_life(tmp_path, ManualClock()) as client:
        watch = client.watch(kinds=["duplicate"])
        heard = asyncio.ensure_future(anext(watch))
        # The watch has begun when the first push is in another answer than its beginning.
        await asyncio.sleep(0.1)
        first = await client.push("q", b"x", unique_key="k", job_key="j", name="mail")
        await client.push("q", b"y", unique_key="k", unique_mode="extend", unique_ttl=5, name="n")
        await client.push("q", b"x", job_key="j")
        events = [(await heard).event, (await anext(watch)).event]
        await watch.aclose()
        assert [(one.kind, one.job_id, one.name, one.message) for one in events] == [
            (EventKind.DUPLICATE, first.id, "n", "EXTENDED"),
            (EventKind.DUPLICATE, first.id, "", "DUPLICATE"),
        ]
        assert {one.state for one in events} == {JobState.READY}


async def test_an_operator_frees_a_key(tmp_path: Path) -> None:
    """Across a restart, too: the job that held it goes on without."""
    clock = ManualClock()
    async with a_life(tmp_path, clock) as client:
        held = await client.push("q", unique_key="k")
        assert await client.jobs.forget_unique_key("q", "k", reason="stuck") == held.id
    async with a_life(tmp_path, clock) as client:
        with pytest.raises(JobNotFound):
            await client.jobs.forget_unique_key("q", "k")
        newer = await client.push("q", unique_key="k")
        assert newer.outcome is Out.CREATED
        assert [job.id for job in await client.pull("q", max_jobs=2)] == [held.id, newer.id]
