"""The way of files to a destination that fails."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from jobline_server.history.files import Encoded
from jobline_server.history.spool import Spool
from jobline_server.runtime import export_sender
from jobline_server.runtime.export_sender import Sender


class Place:
    """A destination that cannot be reached the first times."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.names: list[str] = []
        self.has_two = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def send(self, name: str, path: Path) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionError(name)
        assert path.read_bytes() == b"content"
        self.names.append(name)
        if len(self.names) == 2:
            self._loop.call_soon_threadsafe(self.has_two.set)


def with_files(path: Path, *names: str) -> Spool:
    spool = Spool(path, 1_000)
    for name in names:
        spool.put(Encoded(name, b"content", 1, 1_000))
    return spool


async def test_files_are_sent_in_order_once_the_destination_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_sender, "RETRY_SECONDS_MIN", 0.001)
    spool, place = with_files(tmp_path, "a.parquet", "b.parquet"), Place(2)
    sender = Sender(spool, place)
    sender.start()
    async with asyncio.timeout(10):
        await place.has_two.wait()
        await sender.stop()
    assert place.names == ["a.parquet", "b.parquet"]
    assert (sender.failures, sender.sent, len(spool)) == (2, 2, 0)


async def test_a_stop_does_not_wait_for_a_destination_that_fails(tmp_path: Path) -> None:
    spool = with_files(tmp_path, "a.parquet")
    sender = Sender(spool, Place(1_000))
    sender.start()
    async with asyncio.timeout(10):
        await sender.stop()
    assert (sender.sent, len(spool)) == (0, 1)


async def test_a_file_that_was_removed_by_hand_is_lost_and_the_next_ones_are_sent(
    tmp_path: Path,
) -> None:
    spool, place = with_files(tmp_path, "a.parquet", "b.parquet", "c.parquet"), Place(0)
    (tmp_path / "spool/a.parquet").unlink()
    sender = Sender(spool, place)
    sender.start()
    async with asyncio.timeout(10):
        await place.has_two.wait()
        await sender.stop()
    assert place.names == ["b.parquet", "c.parquet"]
    assert (sender.failures, sender.sent, len(spool), spool.bytes) == (0, 2, 0, 0)
    assert (spool.lost_files, spool.lost_bytes) == (1, 7)


PROGRAM = """
import asyncio, sys, threading
from pathlib import Path
from jobline_server.history.files import Encoded
from jobline_server.history.spool import Spool
from jobline_server.runtime import export_sender

export_sender.STOP_SECONDS = 0.01

class NeverAnswers:
    def __init__(self):
        self.loop, self.asked = asyncio.get_running_loop(), asyncio.Event()

    def send(self, name, path):
        self.loop.call_soon_threadsafe(self.asked.set)
        threading.Event().wait()

async def main():
    spool = Spool(Path(sys.argv[1]), 1_000)
    spool.put(Encoded("a.parquet", b"content", 1, 1_000))
    place = NeverAnswers()
    sender = export_sender.Sender(spool, place)
    sender.start()
    await place.asked.wait()
    await sender.stop()
    print(len(spool))

asyncio.run(main())
"""


def test_a_process_ends_though_its_destination_never_answers(tmp_path: Path) -> None:
    """The file stays for the next start."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert run.stdout == "1\n"


class WrongPassword:
    """A destination whose errors name its URL."""

    def send(self, name: str, path: Path) -> None:
        raise ConnectionError("refused by ftp://me:secret@host/jobline")


async def test_the_log_has_no_credentials_of_a_destination_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[object] = []

    class Lines:
        def error(self, _what: str, **fields: object) -> None:
            said.append(fields["why"])

    monkeypatch.setattr(export_sender, "LOG", Lines())
    sender = Sender(with_files(tmp_path, "a.parquet"), WrongPassword())
    sender.start()
    async with asyncio.timeout(10):
        await sender.stop()
    assert said == ["refused by ftp://***@host/jobline"]
