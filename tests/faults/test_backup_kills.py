"""Servers that are killed while they make backups, under load: only whole backups count, and a
whole one has all that was acknowledged before it was begun."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import pytest

from jobline import AsyncClient, BackupState, JoblineError, SettleOutcome
from jobline_server.offline.backups.choosing import whole_ones
from jobline_server.offline.backups.places import place_of
from jobline_server.testing import ServerProcess, running_server
from tests.backing_up import restored

pytestmark = pytest.mark.fault

KILLS = int(os.environ.get("BACKUP_KILLS", "6"))
QUEUES = ("a", "b", "c", "d")
# What a backup takes here, about, at least: kills come at any moment of one.
SECONDS_MIN = 1.6


class Journal:
    """What the client was told: ids that were accepted and that were acked, in order."""

    def __init__(self) -> None:
        self.pushed: list[int] = []
        self.acked: list[int] = []
        self.marks: dict[str, tuple[int, int]] = {}
        """By the name of a backup: how many of each there were when it was asked for."""

    def of(self, name: str) -> tuple[set[int], set[int]]:
        """Returns the ids that a backup must have, and those that it must have as completed."""
        pushed, acked = self.marks[name]
        return set(self.pushed[:pushed]), set(self.acked[:acked])


async def work(client: AsyncClient, queue: str, journal: Journal) -> None:
    """Pushes, pulls and acks until it is cancelled."""
    while True:
        try:
            pushed = await client.push_many(queue, [{"x": "y" * 200}] * 25)
            journal.pushed += [one.id for one in pushed]
            jobs = await client.pull(queue, max_jobs=10, wait=0, lease=5)
            outcomes = await client.ack(*jobs)
            # A kill undoes a lease that was not committed yet; its ack is then LEASE_LOST.
            journal.acked += [
                job.id
                for job, outcome in zip(jobs, outcomes, strict=True)
                if outcome in {SettleOutcome.DONE, SettleOutcome.ALREADY_DONE}
            ]
        except JoblineError:
            await asyncio.sleep(0.02)


async def back_up(client: AsyncClient, journal: Journal) -> None:
    """Makes one backup after the other until it is cancelled."""
    while True:
        try:
            mark = len(journal.pushed), len(journal.acked)
            found = await client.admin.backup()
            while found.state is BackupState.RUNNING:
                if found.name:
                    journal.marks.setdefault(found.name, mark)
                await asyncio.sleep(0.02)
                found = (await client.admin.backups()).backup
        except JoblineError:
            await asyncio.sleep(0.02)


async def whole_backup(client: AsyncClient) -> float:
    """Makes one backup; returns how many seconds it took."""
    await connected(client)
    began = perf_counter()
    found = await client.admin.backup()
    while found.state is not BackupState.WHOLE:
        assert found.state is BackupState.RUNNING, found.problem
        await asyncio.sleep(0.02)
        found = (await client.admin.backups()).backup
    return perf_counter() - began


async def connected(client: AsyncClient) -> None:
    """Waits until the client has found the server again."""
    while True:
        try:
            await client.admin.backups()
        except JoblineError:
            await asyncio.sleep(0.02)
        else:
            return


async def killed_often(server: ServerProcess, seconds: float) -> None:
    """Kills the server at random moments within so many seconds, and starts it again."""
    chance = random.Random(7)
    for _ in range(KILLS):
        await asyncio.sleep(chance.uniform(0.05, seconds))
        await server.restart()
    await asyncio.sleep(2 * seconds)


def states_in(folder: Path) -> Iterator[str]:
    """Yields the names of folders that have no manifest."""
    return (path.name for path in folder.iterdir() if not (path / "manifest.json").exists())


@pytest.mark.timeout(600)
async def test_what_stands_after_kills_is_whole_and_has_what_was_acknowledged(
    tmp_path: Path,
) -> None:
    """Given thirty kills at random moments; then every backup with a manifest can be restored, and
    has each job that was accepted, and each ack, before it was asked for; the next backup takes
    away what is left of the others.
    """
    to, journal = tmp_path / "to", Journal()
    server = ServerProcess(tmp_path / "data", backup_to=to, checkpoint_journal_bytes="256KiB")
    async with server, AsyncClient(server.address) as client:
        tasks = [asyncio.create_task(work(client, queue, journal)) for queue in QUEUES]
        seconds = max(SECONDS_MIN, 1.5 * await whole_backup(client))
        tasks.append(asyncio.create_task(back_up(client, journal)))
        await killed_often(server, seconds)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await server.restart()
        before = set(states_in(to))
        await whole_backup(client)
        assert not set(states_in(to)), before
        assert await server.terminate() == 0
    whole = whole_ones(place_of(str(to)))
    assert {one.name for one in whole} == {path.name for path in to.iterdir()}
    for one in whole:
        await restored(to / one.name, tmp_path / "new")
        if one.name in journal.marks:
            await compare(tmp_path / "new", *journal.of(one.name))
        shutil.rmtree(tmp_path / "new")
    assert len(whole) > 1


async def compare(data: Path, pushed: set[int], acked: set[int]) -> None:
    """Starts a server on a restored directory, and looks for the jobs that must be there."""
    async with running_server(data) as server, AsyncClient(server.address) as client:
        found = {job.id: job.state.name async for job in client.jobs.list(page_size=1_000)}
    assert not pushed - found.keys()
    assert {found[job_id] for job_id in acked} <= {"COMPLETED"}
