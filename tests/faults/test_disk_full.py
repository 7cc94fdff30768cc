"""A disk that is full: a small tmpfs under a real server."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobline import AsyncClient, DiskFull, SettleOutcome
from jobline_server.testing import RunningServer, running_server

pytestmark = [pytest.mark.fault, pytest.mark.root]

DISK_MIB = 48
PAYLOAD = b"x" * 200_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, soon full."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a tmpfs needs root and a kernel that allows it")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


async def push_until_full(client: AsyncClient) -> int:
    """Pushes until a push is refused; returns how many were acknowledged."""
    for acknowledged in range(DISK_MIB * 10):
        try:
            await client.push_payloads("mail", [PAYLOAD])
        except DiskFull:
            return acknowledged
    raise AssertionError("the disk did not become full")


async def until_accepting(server: RunningServer) -> None:
    """Waits until pushes are taken again."""
    background = server.server.background
    (beat,) = [beat for beat in background.beats if beat.name == "space"]
    while server.runtime.core.commits.disk_full:
        await background.run_once(beat)


async def test_pushes_are_refused_acks_go_on_and_it_recovers_by_itself(small_disk: Path) -> None:
    """With a definite code; nothing that was acknowledged is lost by it."""
    filler = small_disk / "filler"
    async with (
        running_server(small_disk / "data", ballast_bytes=8 << 20) as server,
        AsyncClient(server.address) as client,
    ):
        filler.write_bytes(b"\0" * (16 << 20))
        acknowledged = await push_until_full(client)
        with pytest.raises(DiskFull) as refused:
            await client.push_payloads("mail", [b"x"])
        assert refused.value.definite
        assert acknowledged > 5
        first, second = await client.pull("mail", max_jobs=2, wait=5)
        assert await client.ack(first, second) == [SettleOutcome.DONE] * 2
        filler.unlink()
        await until_accepting(server)
        await client.push_payloads("mail", [b"after"])
        counts = (await client.queues.get("mail")).counts
        assert counts.ready + counts.completed >= acknowledged + 1
        assert counts.completed == 2
