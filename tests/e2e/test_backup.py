"""Backups of a server that serves, and servers that are started on a restored one."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from urllib.request import urlopen

import pytest

from jobline import (
    AsyncClient,
    BackupRunning,
    BackupState,
    NoBackupDestination,
    Pushed,
    SettleOutcome,
)
from jobline_server.offline.opening import CannotRead
from jobline_server.runtime.loops import FAILURES_CRITICAL
from jobline_server.testing import running_server
from tests.backing_up import all_jobs, as_kept, backed_up, ended, fill, last_success, page, restored


def ids_of(pushed: Sequence[Pushed]) -> list[int]:
    """Returns the ids of pushed jobs."""
    return [one.id for one in pushed]


async def test_restored_server_has_every_job_with_its_state(tmp_path: Path) -> None:
    """Given jobs of all states in all shards, some folded into tables, some in the journal; then
    a server on the restored directory has them, their keys, schedules and dependencies."""
    to = tmp_path / "to"
    async with (
        running_server(tmp_path / "data", backup_to=str(to)) as server,
        AsyncClient(server.address) as client,
    ):
        await fill(client)
        await server.runtime.checkpoints.take_due(everything=True)
        await client.push_many("b", [{"n": number} for number in range(50)])
        before = await all_jobs(client)
        made = await backed_up(client)
        await client.push("a", {"n": "lost"})
    assert made.taken_at is not None
    await restored(to, tmp_path / "new")
    async with running_server(tmp_path / "new") as server, AsyncClient(server.address) as client:
        after = await all_jobs(client)
        assert list(map(as_kept, after.values())) == list(map(as_kept, before.values()))
        known = await client.push("later", {"n": 1}, delay=3_600, job_key="once")
        assert known.id in before, "its key is kept"
        assert [one.name async for one in client.schedules.list()] == ["nightly"]


async def test_restored_server_repeats_no_id_and_no_delivery(tmp_path: Path) -> None:
    """Given jobs pushed after the backup, over restarts of the server, which skip ids; then none of
    their ids is given again, and what a worker has of them is not known."""
    to, data = tmp_path / "to", tmp_path / "data"
    async with (
        running_server(data, backup_to=str(to)) as server,
        AsyncClient(server.address) as client,
    ):
        await client.push("mail", {"n": 1})
        (leased,) = await client.pull("mail", lease=60)
        await client.push("mail", {"n": 2})
        await backed_up(client)
    lost: list[int] = []
    for _ in range(3):
        async with running_server(data) as server, AsyncClient(server.address) as client:
            lost += ids_of(await client.push_many("mail", [{"n": n} for n in range(100)]))
            taken = await client.pull("mail", max_jobs=3, lease=60)
    await restored(to, tmp_path / "new")
    async with running_server(tmp_path / "new") as server, AsyncClient(server.address) as client:
        again = ids_of(await client.push_many("mail", [{"n": n} for n in range(100)]))
        assert min(again) > max(lost)
        (same,) = await client.ack(leased)
        assert same is SettleOutcome.DONE, "the backup knows this hand-out"
        outcomes = set(await client.ack(*taken))
        assert outcomes <= {SettleOutcome.LEASE_LOST, SettleOutcome.NOT_FOUND}
        now = await client.pull("mail", max_jobs=200, lease=60)
        assert {(job.id, job.delivery) for job in now}.isdisjoint(
            {(job.id, job.delivery) for job in taken}
        )


async def test_copy_of_a_busy_server_is_one_moment(tmp_path: Path) -> None:
    """Given pushes and acks that never cease; then the backup holds each job that was there before
    it was begun, in the state of one moment, and is whole."""
    to = tmp_path / "to"
    ids: list[int] = []
    acked: set[int] = set()

    async def load(client: AsyncClient, queue: str) -> None:
        while True:
            ids.extend(ids_of(await client.push_many(queue, [{"x": "y" * 500}] * 20)))
            jobs = await client.pull(queue, max_jobs=10, wait=0)
            await client.ack(*jobs)
            acked.update(job.id for job in jobs)

    async with (
        running_server(tmp_path / "data", backup_to=str(to)) as server,
        AsyncClient(server.address) as client,
    ):
        await client.push_many("big", [{"x": "y" * 5_000}] * 3_000)
        tasks = [asyncio.create_task(load(client, queue)) for queue in "abcd"]
        while len(acked) < 200:  # noqa: ASYNC110  # what the tasks do has no signal
            await asyncio.sleep(0.01)
        pushed_before, acked_before = list(ids), set(acked)
        await backed_up(client)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    await restored(to, tmp_path / "new")
    async with running_server(tmp_path / "new") as server, AsyncClient(server.address) as client:
        found = await all_jobs(client)
        assert set(pushed_before) <= found.keys()
        assert all(found[job_id].state.name == "COMPLETED" for job_id in acked_before)


async def test_second_backup_at_once_is_refused(tmp_path: Path) -> None:
    """Given a backup under way; then a second one is refused with its name, and it goes on."""
    async with (
        running_server(tmp_path / "data", backup_to=str(tmp_path / "to")) as server,
        AsyncClient(server.address) as client,
    ):
        await client.admin.backup()
        with pytest.raises(BackupRunning, match="is being made"):
            await client.admin.backup()
        assert (await ended(client)).state is BackupState.WHOLE


async def test_server_without_a_destination_refuses(tmp_path: Path) -> None:
    """Given no `backup_to`; then a backup is refused, and there is nothing to show."""
    async with (
        running_server(tmp_path / "data") as server,
        AsyncClient(server.address) as client,
    ):
        with pytest.raises(NoBackupDestination, match="--backup-to"):
            await client.admin.backup()
        assert (await client.admin.backups()).destination == ""


async def test_only_older_whole_backups_of_this_store_are_deleted(tmp_path: Path) -> None:
    """Given files of others, a half backup and one of another store at the destination; when a
    third backup is whole and two are kept; then the first is gone, and nothing else."""
    to = tmp_path / "to"
    async with (
        running_server(tmp_path / "other", backup_to=str(to)) as server,
        AsyncClient(server.address) as client,
    ):
        of_another = await backed_up(client)
    half = to / "20200101T000000.000Z-0123456789abcdef"
    half.mkdir()
    (half / "jobline.db").write_bytes(b"half")
    (to / "notes.txt").write_text("of somebody")
    async with (
        running_server(tmp_path / "data", backup_to=str(to), backup_keep=2) as server,
        AsyncClient(server.address) as client,
    ):
        names = [(await backed_up(client)).name for _ in range(3)]
    left = {path.name for path in to.iterdir()}
    assert left == {half.name, "notes.txt", of_another.name, *names[1:]}
    with pytest.raises(CannotRead, match="backups of 2 stores"):
        await restored(to, tmp_path / "new")
    await restored(to / names[1], tmp_path / "new")


async def test_backup_without_room_fails_and_the_queue_goes_on(tmp_path: Path) -> None:
    """Given a disk on which a copy would leave too little; then nothing is copied, and it says
    why."""
    async with (
        running_server(
            tmp_path / "data", backup_to=str(tmp_path / "to"), low_space_bytes=1 << 40
        ) as server,
        AsyncClient(server.address) as client,
    ):
        await client.admin.backup()
        made = await ended(client)
        assert made.state is BackupState.FAILED
        assert "too little room" in made.problem
        await client.push("mail", {"n": 1})
        assert server.server.backups is not None
        assert server.server.backups.failures == 1
    assert not list((tmp_path / "data" / "backup").rglob("*.db"))


async def test_next_backup_takes_away_what_a_failed_one_left(tmp_path: Path) -> None:
    """Given a destination that fails half-way; when it works again; then the next backup is whole,
    and nothing of the failed one is left."""
    to = tmp_path / "to"
    async with (
        running_server(tmp_path / "data", backup_to=str(to)) as server,
        AsyncClient(server.address) as client,
    ):
        to.write_text("no directory")
        await client.admin.backup()
        assert (await ended(client)).state is BackupState.FAILED
        to.unlink()
        failed = (await client.admin.backups()).backup.name
        (to / failed).mkdir(parents=True)
        (to / failed / "jobline.db").write_bytes(b"half")
        made = await backed_up(client)
    assert [path.name for path in to.iterdir()] == [made.name]
    assert not (tmp_path / "data" / "backup").exists()


async def test_start_takes_away_what_a_kill_left_and_nothing_else(tmp_path: Path) -> None:
    """Given a backup that was cut off half-way, one that was cut off when it was whole, and one of
    another server; then only the first goes, without another backup."""
    to, data = tmp_path / "to", tmp_path / "data"
    async with (
        running_server(data, backup_to=str(to)) as server,
        AsyncClient(server.address) as client,
    ):
        whole = await backed_up(client)
    store = whole.name.rpartition("-")[2]
    half, of_another = (f"20200101T000000.00{number}Z-{store}" for number in (0, 1))
    for folder in (
        data / "backup" / half,
        data / "backup" / whole.name,
        to / half,
        to / of_another,
    ):
        folder.mkdir(parents=True)
        (folder / "jobline.db").write_bytes(b"half")
    async with running_server(data, backup_to=str(to)):
        while (data / "backup").exists():  # noqa: ASYNC110  # it is done by another process
            await asyncio.sleep(0.05)
    assert sorted(path.name for path in to.iterdir()) == sorted([of_another, whole.name])
    await restored(to / whole.name, tmp_path / "new")


async def test_backups_that_fail_again_and_again_leave_the_server_healthy(tmp_path: Path) -> None:
    """Given a destination that fails each time; then the metrics say so, and the server is healthy,
    so that it stays in its Service; when the destination works, the next backup ends the row."""
    to = tmp_path / "to"
    to.write_text("no directory")
    async with running_server(
        tmp_path / "data", backup_to=str(to), backup_every_seconds=1
    ) as server:
        work = server.server.background.records["backup"].work
        while work.failures_in_a_row < FAILURES_CRITICAL:  # noqa: ASYNC110  # of another process
            await asyncio.sleep(0.05)
        assert await page(server.http, "healthz") == (200, "well\n")
        assert await page(server.http, "readyz") == (200, "ready\n")
        assert server.server.services.health.serving
        _, metrics = await page(server.http, "metrics")
        assert re.search(r'\njobline_beat_failures_in_a_row{beat="backup"} [1-9]', metrics)
        assert 'work="backup"' not in metrics
        to.unlink()
        while work.failures_in_a_row:  # noqa: ASYNC110  # as above
            await asyncio.sleep(0.05)
        assert server.server.backups is not None
        assert server.server.backups.last_success_ms


async def test_due_backups_are_made_and_found_after_a_restart(tmp_path: Path) -> None:
    """Given `backup_every_seconds`; then one is made without a call, and the next server knows from
    the destination when that was."""
    to, data = tmp_path / "to", tmp_path / "data"
    async with (
        running_server(data, backup_to=str(to), backup_every_seconds=3_600) as server,
        AsyncClient(server.address) as client,
    ):
        last = await last_success(client)
    async with (
        running_server(data, backup_to=str(to)) as server,
        AsyncClient(server.address) as client,
    ):
        assert abs(await last_success(client) - last) < timedelta(milliseconds=1)
        page = await asyncio.to_thread(lambda: urlopen(f"http://{server.http}/metrics").read())
    lines = dict(line.rsplit(" ", 1) for line in page.decode().splitlines() if line[0] != "#")
    seconds = float(lines["jobline_backup_last_success_timestamp_seconds"])
    assert abs(seconds - last.timestamp()) < 0.001
    assert lines["jobline_backup_failures_total"] == "0.0"


async def test_backup_at_a_url(tmp_path: Path) -> None:
    """Given a URL of fsspec; then backups go there, are counted, and come back."""
    to = f"local://{tmp_path}/to"
    async with (
        running_server(tmp_path / "data", backup_to=to, backup_keep=1) as server,
        AsyncClient(server.address) as client,
    ):
        await client.push("mail", {"n": 1})
        await backed_up(client)
        made = await backed_up(client)
    assert [path.name for path in (tmp_path / "to").iterdir()] == [made.name]
    await restored(to, tmp_path / "new")
    async with running_server(tmp_path / "new") as server, AsyncClient(server.address) as client:
        assert len(await all_jobs(client)) == 1
