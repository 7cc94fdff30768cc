"""A history that a real server exports while it is loaded and killed, and what can be said of it
without Spark: the server's own counts, and a computation with pandas.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from jobline import AsyncClient, FlowJob, JoblineError, Retention
from jobline_server.testing import ServerProcess

# The server keeps 100,000 completed jobs of a queue: a million events need several.
BULK = ("mail", "images", "search", "webhooks", "exports", "reports")
QUEUES = (*BULK, "orders")
PUSHERS = 2
LOT = 500
# What was lost on the way to a client that did not wait is handed out again this soon.
LEASE_SECONDS = 3
PANDAS_COLUMNS = [
    "shard", "offset", "at", "event", "queue", "job_id", "final", "ready_at", "leased_at",
    "pushed_at",
]  # fmt: skip


@dataclass
class Exported:
    """The history, the ids of jobs that the server accepted, and its counts by queue and state."""

    history: Path
    accepted: list[int] = field(default_factory=list)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)


async def export(folder: Path, *, jobs: int, kills: int) -> Exported:
    """Loads a server until it has accepted so many jobs and all have ended; kills it in between,
    each time after an equal part of them.
    """
    made = Exported(folder / "history")
    server = ServerProcess(
        folder / "data",
        history=made.history,
        history_seconds=1,
        checkpoint_journal_bytes="1MiB",
    )
    async with server, AsyncClient(server.address) as client:
        # All ended jobs are kept, so that the server can count them after any number of kills.
        for queue in QUEUES:
            await client.queues.update(queue, retention=Retention(count=10_000_000, age="1d"))
        pulling = [asyncio.ensure_future(_pull(client, queue)) for queue in QUEUES]
        pushing = [asyncio.ensure_future(_push(client, made, jobs)) for _ in range(PUSHERS)]
        for part in range(1, kills + 1):
            while len(made.accepted) < jobs * part // (kills + 1):  # noqa: ASYNC110 - of two tasks
                await asyncio.sleep(0.005)
            await server.restart()
        await asyncio.gather(*pushing)
        await asyncio.wait_for(_wait_until_idle(client), 120)
        for task in pulling:
            task.cancel()
        await asyncio.wait(pulling)
        for queue in QUEUES:
            counts = (await client.queues.get(queue)).counts
            made.counts[queue] = {
                "completed": counts.completed, "dead": counts.dead, "cancelled": counts.cancelled,
            }  # fmt: skip
        assert await server.terminate() == 0
    return made


async def _push(client: AsyncClient, made: Exported, until: int) -> None:
    """Pushes until so many jobs are accepted; a push that a kill cut off is left to be."""
    number = 0
    while len(made.accepted) < until:
        number += 1
        with suppress(JoblineError):
            lot = await client.push_payloads(
                BULK[number % len(BULK)], [b"x" * 20] * LOT, name="bulk", max_attempts=2
            )
            made.accepted += lot.ids
            if number % 5 == 0:
                children = [FlowJob("mail", b"child"), FlowJob("images", b"child")]
                flow = await client.flows.push(FlowJob("orders", b"parent", children=children))
                made.accepted += flow.ids
            if number % 7 == 0:
                late = await client.push("orders", b"late", delay="1h")
                made.accepted.append(late.id)
                await _cancel(client, late.id)


async def _cancel(client: AsyncClient, job_id: int) -> None:
    """Cancels until it is answered: a kill may cut that off, and the job would wait for an hour."""
    while True:
        try:
            await client.jobs.cancel(job_id)
        except JoblineError:
            await asyncio.sleep(0.02)
        else:
            return


async def _pull(client: AsyncClient, queue: str) -> None:
    """Pulls until it is cancelled; completes most jobs, and fails some twice, so that they die."""
    while True:
        try:
            jobs = await client.pull(
                queue, max_jobs=LOT, wait=0.2, lease=LEASE_SECONDS, worker=f"worker of {queue}"
            )
            bad = [job for job in jobs if job.id % 97 == 0]
            await client.ack(*[job for job in jobs if job.id % 97])
            for job in bad:
                await client.fail(job, f"no room for {job.id}", retry_after=0.1)
        except JoblineError:
            await asyncio.sleep(0.02)


async def _wait_until_idle(client: AsyncClient) -> None:
    for queue in QUEUES:
        while True:
            counts = (await client.queues.get(queue)).counts
            if not counts.scheduled + counts.blocked + counts.ready + counts.active:
                break
            await asyncio.sleep(0.1)


def repeat_rows(history: Path, files: int) -> int:
    """Exports rows of some files again, as an exporter that lost its position would: the middle of
    each file, under the offsets of its rows. Returns how many rows are repeated.
    """
    largest = sorted(history.rglob("*.parquet"), key=lambda path: -path.stat().st_size)[:files]
    repeated = 0
    for path in largest:
        rows = pq.ParquetFile(path).read()
        part = rows.slice(len(rows) // 3, max(1, len(rows) // 3))
        first, last = part["offset"][0].as_py(), part["offset"][-1].as_py()
        shard = path.name.partition("-")[0]
        pq.write_table(part, path.with_name(f"{shard}-{first}-{last}.parquet"))
        repeated += len(part)
    return repeated


def events_of(history: Path) -> pd.DataFrame:
    """Returns all rows of all files, repeated ones once."""
    paths = sorted(history.rglob("*.parquet"))
    tables = [pq.ParquetFile(path).read(columns=PANDAS_COLUMNS).to_pandas() for path in paths]
    return pd.concat(tables, ignore_index=True).drop_duplicates(["shard", "offset"])
