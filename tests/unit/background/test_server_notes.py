"""Tells of a disk that is nearly full, once, and while there is room for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from jobline_server.background.server_notes import NoteServer
from jobline_server.engine.server_notes import ServerNoteKind
from jobline_server.runtime.calls.server_notes import ServerNotes
from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.runtime import Runtime
from jobline_server.storage.space import NoSpace
from tests.unit.runtime.conftest import opened

MESSAGES = list[str]


class Disk(NoSpace):
    """A disk with this much room."""

    def __init__(self) -> None:
        self.free: int | None = 1_000

    def free_bytes(self) -> int | None:
        return self.free


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    async with opened(tmp_path, ManualClock()) as runtime:
        yield runtime


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> MESSAGES:
    found: MESSAGES = []

    def add(_self: ServerNotes, kind: ServerNoteKind, message: str) -> None:
        assert kind is ServerNoteKind.STORAGE_LOW
        found.append(message)

    monkeypatch.setattr(ServerNotes, "add_first", add)
    return found


async def test_a_low_disk_is_said_once_and_again_after_there_was_more(
    runtime: Runtime, said: MESSAGES
) -> None:
    """A little more is not enough: it goes up and down by some pages all the time."""
    runtime.core.space = disk = Disk()
    task = NoteServer(runtime.core, runtime.streams.presence, low_bytes=1_000)
    for free, times in [(1_000, 0), (999, 1), (1_100, 1), (10, 1), (1_250, 1), (999, 2)]:
        disk.free = free
        await task.run_once(runtime.core.now())
        assert len(said) == times
    assert said == ["999 bytes are free"] * 2


async def test_a_full_disk_is_not_said_to_be_low(runtime: Runtime, said: MESSAGES) -> None:
    """That could not be written. Nor is any said where nobody knows, or no room is asked for."""
    runtime.core.space = disk = Disk()
    task = NoteServer(runtime.core, runtime.streams.presence, low_bytes=2_000)
    runtime.core.commits.disk_full = True
    await task.run_once(runtime.core.now())
    runtime.core.commits.disk_full = False
    disk.free = None
    await task.run_once(runtime.core.now())
    disk.free = 0
    none = NoteServer(runtime.core, runtime.streams.presence, low_bytes=0)
    await none.run_once(runtime.core.now())
    assert said == []
    await task.run_once(runtime.core.now())
    assert said == ["0 bytes are free"]


async def test_a_disk_that_cannot_be_asked_keeps_no_note_back(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []

    def write(_self: ServerNotes) -> int:
        written.append("written")
        return 1

    monkeypatch.setattr(ServerNotes, "write", write)

    def broken() -> int:
        raise OSError

    monkeypatch.setattr(runtime.core, "space", SimpleNamespace(free_bytes=broken))
    with pytest.raises(OSError):  # noqa: PT011  # the loop around it counts it
        await NoteServer(runtime.core, runtime.streams.presence, low_bytes=1).run_once(
            runtime.core.now()
        )
    assert written == ["written"]
