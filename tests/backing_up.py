"""What tests of backups share: jobs of all kinds, to make a backup and wait for it, and to restore
it."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from urllib.request import urlopen

from jobline import AsyncClient, Backup, BackupState, Job
from jobline_server.offline.backups.restoring import Restored, find_backup, restore
from jobline_server.offline.findings import Progress


class Silent(Progress):
    """Shows nothing."""

    def begin(self, title: str, total: int | None) -> Callable[[int], None]:
        """Begins a piece of work."""
        return lambda _amount: None


async def ended(client: AsyncClient) -> Backup:
    """Returns the newest backup when it is over."""
    while True:
        found = (await client.admin.backups()).backup
        if found.state is not BackupState.RUNNING:
            return found
        await asyncio.sleep(0.05)  # it is made by another process


async def last_success(client: AsyncClient) -> datetime:
    """Returns when the newest backup was taken, once there is one."""
    while True:
        found = (await client.admin.backups()).last_success_at
        if found is not None:
            return found
        await asyncio.sleep(0.05)  # as above


async def page(http: str, path: str) -> tuple[int, str]:
    """Returns the status of a page of the HTTP port, and what it says."""

    def read() -> tuple[int, str]:
        with urlopen(f"http://{http}/{path}") as reply:
            return reply.status, reply.read().decode()

    return await asyncio.to_thread(read)


async def metric(http: str, name: str) -> float | None:
    """Returns a metric of backups, None if the server does not have it yet."""
    _, metrics = await page(http, "metrics")
    found = re.search(rf"^jobline_backup_{name} (\S+)$", metrics, re.MULTILINE)
    return float(found[1]) if found else None


async def destination_asked(http: str) -> None:
    """Waits until the server knows when the newest backup was made, which it asks once, soon after
    its start: what fails from then on are backups."""
    while await metric(http, "last_success_timestamp_seconds") is None:  # noqa: ASYNC110  # as above
        await asyncio.sleep(0.05)


async def backed_up(client: AsyncClient) -> Backup:
    """Makes a backup and returns it; it must be whole."""
    await client.admin.backup()
    found = await ended(client)
    assert found.state is BackupState.WHOLE, found.problem
    return found


async def restored(where: Path | str, data: Path) -> Restored:
    """Restores the newest backup at a place."""
    now_ms = time.time_ns() // 1_000_000
    return await asyncio.to_thread(restore, find_backup(str(where)), data, now_ms, Silent())


async def all_jobs(client: AsyncClient) -> dict[int, Job]:
    """Returns all jobs that the server knows, by id."""
    return {job.id: job async for job in client.jobs.list(include_payloads=True)}


def as_kept(job: Job) -> tuple[object, ...]:
    """Returns what a start keeps of a job: leases have their whole time again."""
    return (job.id, job.queue, job.state, job.payload, job.attempts)


async def fill(client: AsyncClient) -> None:
    """Pushes jobs into all shards, and leaves some of each state."""
    for queue in ("a", "b", "c", "d", "e", "f", "g", "h"):
        await client.push_many(queue, [{"n": number} for number in range(30)])
        taken = await client.pull(queue, max_jobs=20, lease=60)
        await client.ack(*taken[:5])
        for job in taken[5:8]:
            await client.fail(job, "a reason", retry_after=600)
        await client.fail(taken[8], "for good", then="dead")
    await client.push("later", {"n": 1}, delay=3_600, job_key="once")
    await client.schedules.create("nightly", "a", cron="0 3 * * *")
    parent = await client.push("a", {"n": 0})
    await client.push("h", {"n": 1}, depends_on=[parent.id])
