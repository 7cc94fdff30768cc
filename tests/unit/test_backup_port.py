"""The other process of backups: how it is started, and that it ends with the caller."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from jobline_server import backup_port
from jobline_server.backup_port import NICENESS, OtherProcess
from jobline_server.offline.backups import places
from jobline_server.offline.backups.places import DirectoryPlace
from jobline_server.runtime.backup_destination import BackupFailed


class Started:
    """Keeps the processes that are started, and how they run as they begin."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []
        self.niceness: list[int] = []
        self._start = backup_port._started
        monkeypatch.setattr(backup_port, "_started", self._started)

    def _started(self) -> subprocess.Popen[bytes]:
        process = self._start()
        self.processes.append(process)
        self.niceness.append(os.getpriority(os.PRIO_PROCESS, process.pid))
        return process


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    return Started(monkeypatch)


async def test_process_gives_way_to_the_server_from_its_first_instruction(
    started: Started, tmp_path: Path
) -> None:
    """Its imports alone took the server's core for some tenths of a second."""
    assert await OtherProcess(str(tmp_path / "to"), 0, "1").newest_ms("0" * 16, "9") == 0
    before = os.getpriority(os.PRIO_PROCESS, 0)
    assert started.niceness == [min(before + NICENESS, 19)]
    assert started.processes[0].returncode is not None


async def test_what_the_destination_says_is_the_reason(tmp_path: Path) -> None:
    to = tmp_path / "to"
    to.mkdir()
    (to / f"20260101T000000.000Z-{'0' * 16}").mkdir()
    (to / f"20260101T000000.000Z-{'0' * 16}" / "manifest.json").mkdir()
    with pytest.raises(BackupFailed, match="Is a directory"):
        await OtherProcess(str(to), 0, "1").newest_ms("0" * 16, "9")


async def test_caller_who_gives_up_ends_the_process(started: Started, tmp_path: Path) -> None:
    """Given a destination that never answers: a pipe that nobody reads."""
    to = tmp_path / "to" / f"20260101T000000.000Z-{'0' * 16}"
    to.mkdir(parents=True)
    os.mkfifo(to / "manifest.json")
    asking = asyncio.create_task(
        OtherProcess(str(tmp_path / "to"), 0, "1").newest_ms("0" * 16, "9")
    )
    while not started.processes:  # noqa: ASYNC110  # it is started on a thread
        await asyncio.sleep(0.01)
    asking.cancel()
    await asyncio.wait([asking])
    assert asking.cancelled()
    assert started.processes[0].returncode is not None


def test_program_whose_server_went_away_ends_in_silence() -> None:
    process = backup_port._started()
    said, _ = process.communicate()
    assert (process.returncode, said) == (1, b"")


def test_files_become_durable_in_small_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given the disk of the queue as destination; then its commits never wait for a whole file."""
    synced: list[int] = []

    def sync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_size)

    monkeypatch.setattr(os, "fdatasync", sync)
    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(places, "DURABLE_BYTES", 100)
    pieces = [bytes(60)] * 7
    DirectoryPlace(tmp_path).write("one", "jobline.db", iter(pieces))
    assert synced == [120, 240, 360, 420]
    assert (tmp_path / "one" / "jobline.db").read_bytes() == b"".join(pieces)
