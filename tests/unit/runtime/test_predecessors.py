"""Mistakes that other queues made between a reply and the disk, each by the name of the mistake."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jobline_server.engine.commands import FailItem
from jobline_server.engine.endings import Ended
from jobline_server.engine.values import AckLevel, FailAction, JobError, JobState
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.storage.store import DiskFull
from tests.unit.runtime.commits.test_commits import a_pull, a_push
from tests.unit.runtime.conftest import opened

FAILED_COMMITS = 25


async def test_what_was_answered_is_never_dropped_however_often_its_commit_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Predecessors: an acknowledged push was dropped after ten failed flushes. Here the same rows
    are tried until they are on disk.
    """
    monkeypatch.setattr("jobline_server.runtime.commits.commits.FULL_RETRY_SECONDS", 0)
    async with opened(tmp_path, ManualClock()) as runtime:
        commit, failed, is_written = runtime.core.store.commit, 0, asyncio.Event()

        async def full(*arguments: object) -> None:
            nonlocal failed
            if failed < FAILED_COMMITS:
                failed += 1
                raise DiskFull
            await commit(*arguments)  # type: ignore[arg-type]  # handed on as they came
            is_written.set()

        monkeypatch.setattr(runtime.core.store, "commit", full)
        pushed = await runtime.pushes.push(a_push(b"x", level=AckLevel.BUFFERED))
        looping = asyncio.ensure_future(runtime.core.commits.run())
        async with asyncio.timeout(10):
            await is_written.wait()
        assert failed == FAILED_COMMITS
        runtime.core.commits.close()
        await looping
    async with opened(tmp_path, ManualClock()) as again:
        assert again.core.slots[0].shard.state_of(pushed.first_id) is JobState.READY


async def test_who_waits_for_a_job_is_told_when_it_dies(runtime: Runtime) -> None:
    """Predecessors: who waited for a job that died waited for the timeout."""
    pushed = await runtime.pushes.push(a_push(b"x", level=AckLevel.BUFFERED))
    await runtime.core.commits.commit_once()
    told: list[tuple[int, Ended | None]] = []

    async def wait() -> None:
        async for part in runtime.waits.wait([pushed.first_id], 3_600_000):
            told.extend(part)

    waiting = asyncio.ensure_future(wait())
    (leased,) = (await a_pull(runtime)).items()
    failing = asyncio.ensure_future(
        runtime.settle_calls.fail(
            [FailItem(pushed.first_id, leased.delivery, JobError("Gone"), then=FailAction.DEAD)]
        )
    )
    await asyncio.sleep(0)
    await runtime.core.commits.commit_once()
    async with asyncio.timeout(5):
        await asyncio.gather(failing, waiting)
    assert [(job_id, end and end.state) for job_id, end in told] == [
        (pushed.first_id, JobState.DEAD)
    ]
