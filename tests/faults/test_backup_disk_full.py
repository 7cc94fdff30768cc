"""A disk of backups that is full: a small tmpfs at the destination of a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobline import AsyncClient, BackupState
from jobline_server.offline.backups.choosing import whole_ones
from jobline_server.offline.backups.places import place_of
from jobline_server.testing import running_server
from tests.backing_up import backed_up, destination_asked, ended, metric, restored
from tests.small_disk import mounted, resize

pytestmark = [pytest.mark.fault, pytest.mark.root]

DISK_MIB = 8
PAYLOAD = b"x" * 200_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that has room for a backup of an empty server."""
    with mounted(tmp_path / "disk", DISK_MIB) as disk:
        yield disk


def whole_names(to: Path) -> list[str]:
    """Returns the names of the whole backups at a place, the newest first."""
    return [one.name for one in whole_ones(place_of(str(to)))]


async def test_a_backup_without_room_counts_as_a_failure_and_the_queue_goes_on(
    small_disk: Path, tmp_path: Path
) -> None:
    """Given a whole backup, and too little room for the next one; then the first one stays the
    newest, and can be restored; with more room the next one leaves nothing of what had failed.
    """
    to = small_disk / "to"
    async with (
        running_server(tmp_path / "data", backup_to=str(to)) as server,
        AsyncClient(server.address) as client,
    ):
        await destination_asked(server.http)
        await client.push("first", {"n": 1})
        first = await backed_up(client)
        seen = await metric(server.http, "last_success_timestamp_seconds")
        for _ in range(DISK_MIB):
            await client.push_payloads("big", [PAYLOAD] * 10)

        await client.admin.backup()
        failed = await ended(client)
        assert failed.state is BackupState.FAILED
        assert "No space left on device" in failed.problem
        assert await metric(server.http, "failures_total") == 1
        assert await metric(server.http, "last_success_timestamp_seconds") == seen
        assert whole_names(to) == [first.name]
        assert not (to / failed.name / "manifest.json").exists()
        assert not list((tmp_path / "data" / "backup").rglob("*.db")), "the copy takes no room"

        (job,) = await client.pull("first", wait=5)
        await client.ack(job)
        await client.push("first", {"n": 2})
        assert not server.runtime.core.commits.disk_full, "it is another disk"
        await restored(to, tmp_path / "old")

        resize(small_disk, 8 * DISK_MIB)
        second = await backed_up(client)
        assert await metric(server.http, "failures_total") == 1
        assert {path.name for path in to.iterdir()} == {first.name, second.name}
    async with running_server(tmp_path / "old") as server, AsyncClient(server.address) as client:
        assert (await client.queues.get("first")).counts.ready == 1
        assert [queue.name async for queue in client.queues.list()] == ["first"]
