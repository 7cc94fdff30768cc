"""A commit of much is made ready in slices, and is one commit all the same."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jobline_server.engine.entries import Fact, JobsCompleted, JobsPushed, JobsRetried
from jobline_server.engine.records import JobRecord
from jobline_server.engine.ties import Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, AckLevel, JobState
from jobline_server.runtime import pace
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.commits import cuts
from jobline_server.runtime.runtime import Runtime
from jobline_server.storage.codec import encode_batch
from jobline_server.storage.store import JournalRow
from tests.unit.runtime.commits.test_commits import a_push
from tests.unit.runtime.conftest import opened

PUSHES = 100


async def pushed(runtime: Runtime, count: int) -> None:
    """So many facts."""
    before = len(runtime.core.slots[0].shard.entries)
    for _ in range(count):
        task = asyncio.ensure_future(runtime.pushes.push(a_push(b"x", level=AckLevel.BUFFERED)))
        while not task.done():  # noqa: ASYNC110  # a decision is no event
            await asyncio.sleep(0)
    assert len(runtime.core.slots[0].shard.entries) >= before + count


async def test_a_commit_is_encoded_in_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial C2: what came in during one fsync was encoded in one step of 27 ms. What comes in
    meanwhile belongs to the next commit, and all of it is there after a restart.
    """
    monkeypatch.setattr(pace, "SLICE_SECONDS", 0.0)
    async with opened(tmp_path, ManualClock()) as runtime:
        await pushed(runtime, PUSHES)
        shard = runtime.core.slots[0].shard
        rows: list[JournalRow] = []
        facts = list(shard.entries)
        write = runtime.core.store.commit

        async def seen(some: list[JournalRow], ceilings: dict[int, int]) -> None:
            rows.extend(some)
            await write(some, ceilings)

        monkeypatch.setattr(runtime.core.store, "commit", seen)
        task, rounds = asyncio.ensure_future(runtime.core.commits.commit_once()), 0
        await asyncio.sleep(0)
        await pushed(runtime, 1)
        while not rows:
            await asyncio.sleep(0)
            rounds += 1
        await task
        assert rounds >= PUSHES // cuts.PART_FACTS - 3
        assert [row.blob for row in rows] == [encode_batch(facts)]
        assert (shard.committed, len(shard.entries)) == (rows[0].offset, 1)
        await runtime.core.commits.commit_once()
        assert rows[1].chain_before == rows[0].chain
    async with opened(tmp_path, ManualClock()) as runtime:
        assert runtime.queues.get_queue("mail").counts[JobState.READY] == PUSHES + 1


def test_pushes_of_many_jobs_are_not_encoded_together() -> None:
    """Sixteen of a thousand jobs each, every one of another group, were one step of 50 ms. What
    names jobs by runs costs the same however many they are.
    """
    few, many = pushed_rows(10), pushed_rows(cuts.PART_JOBS)
    assert parts_of([many] * 3) == [1, 1, 1]
    assert parts_of([few, many, few, few, many]) == [2, 3]
    assert parts_of([few] * 40) == [16, 16, 8]
    acked = JobsCompleted(1, [1], [100_000])
    assert parts_of([acked] * 20) == [16, 4]
    assert parts_of([]) == []


def test_facts_of_many_parents_are_not_encoded_together() -> None:
    """Sixteen of a dozen jobs each that have a thousand parents took 30 ms: pushed or put back."""
    parents = tuple(range(1, 1 + cuts.PARENTS_A_JOB * cuts.PART_JOBS // 2))
    tied = pushed_rows(1)
    tied.ties = [Ties(parents=parents)]
    assert parts_of([tied] * 5) == [2, 2, 1]
    blocked = pushed_rows(1)
    blocked.ties, blocked.parents_left = tied.ties, [parents]
    assert parts_of([blocked] * 2) == [1, 1]
    record = JobRecord(1, "mail", DEFAULT_OPTIONS, b"x", 1, ties=tied.ties[0])
    retried = JobsRetried(1, [record] * 2, [JobState.DEAD] * 2)
    assert parts_of([retried] * 2) == [1, 1]


def pushed_rows(jobs: int) -> JobsPushed:
    return JobsPushed(1, "mail", 1, [DEFAULT_OPTIONS], [b"x"] * jobs)


def parts_of(facts: list[Fact]) -> list[int]:
    """How many facts each part has; all of them are there, in order."""
    parts = [*cuts._parts_of(facts)]
    assert [fact for part in parts for fact in part] == facts
    return [*map(len, parts)]
