"""Commits of more bytes than SQLite stores in one value."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from jobline.v1 import job_service_pb2 as jobs
from jobline.v1.event_pb2 import EventKind
from jobline.v1.job_pb2 import AckLevel
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.engine import entry_bytes
from jobline_server.testing import running_server
from tests.server.conftest import connect, until

BYTES, CALLS = 60_000, 30
ENTRY_BYTES, VALUE_BYTES_MAX = 100_000, 250_000


@pytest.fixture
def small_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite takes values of a quarter of a megabyte, in place of a gigabyte."""
    opened: Any = sqlite3.connect

    def limited(*args: Any, **how: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = opened(*args, **how)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)
        return connection

    monkeypatch.setattr(sqlite3, "connect", limited)
    monkeypatch.setattr(entry_bytes, "ENTRY_BYTES_MAX", ENTRY_BYTES)


async def push(stub: Any, request: jobs.PushRequest) -> None:
    """Pushes, and waits for the answer."""
    await stub.Push(request)


@pytest.mark.usefixtures("small_values")
async def test_what_is_too_much_for_one_row_is_stored_in_several(tmp_path: Path) -> None:
    """A server took large pushes of many callers into one row, and stopped for good. Those who
    watch get each job once, whatever row it is in, and so does a worker after a start.
    """
    payloads = [bytes([number]) * BYTES for number in range(CALLS)]
    async with running_server(tmp_path) as server, connect(server.address) as channel:
        stub = JobServiceStub(channel)
        watching = stub.Watch(jobs.WatchRequest())
        await watching.initial_metadata()
        core = server.runtime.core
        shard = core.slots.of_queue("q").shard
        before = shard.committed
        async with core.commits.exclusive:  # all of them gather
            calls = [
                asyncio.create_task(push(stub, jobs.PushRequest(queue="q", payloads=[one])))
                for one in payloads
            ]
            await until(lambda: len(shard.full) >= CALLS // 2 - 1)
        await asyncio.gather(*calls)
        assert shard.committed - before >= CALLS // 2
        pushed: set[int] = set()
        async with asyncio.timeout(10):
            async for response in watching:
                pushed |= {event.job_id for event in response.events if event.job_id}
                if len(pushed) == CALLS:
                    break
        watching.cancel()
    async with running_server(tmp_path) as server, connect(server.address) as channel:
        stub = JobServiceStub(channel)
        request = jobs.PullRequest(max_jobs=CALLS, accepts_runs=False)
        request.queues.add(queue="q")
        leased = await stub.Pull(request)
    assert sorted(job.payload for job in leased.jobs) == payloads
    assert {job.id for job in leased.jobs} == pushed


@pytest.mark.usefixtures("small_values")
async def test_no_event_is_told_before_the_push_of_its_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a job in memory, which was handed out and acked while its push was in the last of several
    rows under way.
    """
    begun, may_end, told = asyncio.Event(), asyncio.Event(), list[int]()
    async with (
        running_server(tmp_path, shards=1) as server,
        connect(server.address) as channel,
    ):
        stub, commits = JobServiceStub(channel), server.runtime.core.commits
        shard, written = server.runtime.core.slots[0].shard, commits._store.commit

        async def commit(*rows: Any) -> None:
            begun.set()
            await may_end.wait()
            await written(*rows)

        watching = stub.Watch(jobs.WatchRequest())
        await watching.initial_metadata()
        in_memory = jobs.PushRequest(
            queue="m", payloads=[b"m"], ack_level=AckLevel.ACK_LEVEL_MEMORY
        )
        pull = jobs.PullRequest(max_jobs=1)
        pull.queues.add(queue="m")
        async with commits.exclusive:
            large = jobs.PushRequest(queue="q", payloads=[bytes(BYTES)])
            calls = [asyncio.create_task(push(stub, large)) for _ in range(6)]
            await until(lambda: len(shard.full) == 2)
            await push(stub, in_memory)
            monkeypatch.setattr(commits._store, "commit", commit)
        await begun.wait()
        (leased,) = (await stub.Pull(pull)).jobs
        acking = stub.Ack(jobs.AckRequest(ids=[leased.id], deliveries=[leased.delivery]))
        await until(lambda: len(server.runtime.feed._held.get(0, [])) >= 2)
        may_end.set()
        await acking
        await asyncio.gather(*calls)
        async with asyncio.timeout(10):
            async for response in watching:
                told += [event.kind for event in response.events if event.job_id == leased.id]
                if EventKind.EVENT_KIND_COMPLETED in told:
                    break
        watching.cancel()
    assert told == [
        EventKind.EVENT_KIND_PUSHED,
        EventKind.EVENT_KIND_LEASED,
        EventKind.EVENT_KIND_COMPLETED,
    ]
