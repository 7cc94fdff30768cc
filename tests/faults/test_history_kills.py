"""The history of a server that is killed again and again."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobline import AsyncClient, JoblineError
from jobline_server.testing import ServerProcess

pytestmark = pytest.mark.fault

KILLS = 5
QUEUES = ("a", "b", "c")
MANY = 200


def read(history: Path) -> list[dict[str, Any]]:
    """Returns all rows of all files, each once, in the order of each shard."""
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for path in sorted(history.rglob("*.parquet")):
        for row in pq.ParquetFile(path).read().to_pylist():
            known = found.setdefault((row["shard"], row["offset"]), row)
            assert known == row, "a repeated row is the same row"
    return [found[key] for key in sorted(found)]


async def produce(client: AsyncClient, accepted: list[int]) -> None:
    """Pushes until it is cancelled; notes the ids that the server has accepted."""
    number = 0
    while True:
        number += 1
        await asyncio.sleep(0.005)
        queue = QUEUES[number % len(QUEUES)]
        try:
            if number % 5:
                lot = await client.push_payloads(queue, [b"x" * 20] * MANY, max_attempts=2)
                accepted += lot.ids
            else:
                pushed = await client.push(queue, b"one", priority=number % 3, max_attempts=2)
                accepted.append(pushed.id)
        except JoblineError:
            await asyncio.sleep(0.02)


async def consume(client: AsyncClient, queue: str) -> None:
    """Pulls until it is cancelled; completes most jobs, fails some."""
    while True:
        try:
            jobs = await client.pull(queue, max_jobs=150, wait=0.2, lease=2)
            bad = [job for job in jobs if job.id % 11 == 0]
            await client.ack(*[job for job in jobs if job.id % 11])
            for job in bad:
                await client.fail(job, "a reason", retry_after=0.1)
        except JoblineError:
            await asyncio.sleep(0.02)


async def live(client: AsyncClient, queue: str) -> int:
    """Returns how many jobs of a queue have not ended."""
    counts = (await client.queues.get(queue)).counts
    return counts.scheduled + counts.ready + counts.active


@pytest.mark.timeout(180)
async def test_no_event_is_lost_or_doubled_by_kills(tmp_path: Path) -> None:
    """What was accepted has one push and one end, with times in order, whatever was killed when:
    the journal keeps what is not exported.
    """
    history, accepted = tmp_path / "history", list[int]()
    server = ServerProcess(
        tmp_path / "data",
        history=history,
        history_seconds=1,
        checkpoint_journal_bytes="64KiB",
    )
    async with server, AsyncClient(server.address) as client:
        tasks = [asyncio.ensure_future(produce(client, accepted))]
        tasks += [asyncio.ensure_future(consume(client, queue)) for queue in QUEUES]
        for number in range(KILLS):
            await asyncio.sleep(1.3 + 0.37 * number)
            await server.restart()
        await asyncio.sleep(1)
        tasks[0].cancel()
        for queue in QUEUES:
            while await live(client, queue):  # noqa: ASYNC110  # the server is another process
                await asyncio.sleep(0.1)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert await server.terminate() == 0
    rows = read(history)
    pushed = Counter(row["job_id"] for row in rows if row["event"] == "pushed")
    ended = Counter(row["job_id"] for row in rows if row["final"])
    assert set(pushed.values()) == {1} == set(ended.values())
    assert pushed.keys() == ended.keys() >= set(accepted)
    for row in rows:
        if row["final"]:
            assert row["pushed_at"] <= row["ready_at"] <= row["leased_at"] <= row["at"]
