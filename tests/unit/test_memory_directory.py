"""Directories in memory, and what a process that was killed has left of one."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from jobline_server.dev import memory_directory
from jobline_server.dev.memory_directory import HELD, PREFIX, remove_leftovers


def test_is_empty_and_gone_at_the_end() -> None:
    with memory_directory.memory_directory() as data:
        assert list(data.iterdir()) == []
        (data / "file").touch()
    assert not data.parent.exists()


def test_is_elsewhere_where_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers have little there."""
    monkeypatch.setattr(memory_directory, "FREE_BYTES_MIN", 1 << 60)
    assert memory_directory.memory_root() is None
    with memory_directory.memory_directory() as data:
        assert data.is_dir()


def test_what_nobody_holds_is_removed(tmp_path: Path) -> None:
    """And what another process works in is left alone, as is what is not ours."""
    left, held, other = (tmp_path / name for name in (f"{PREFIX}a", f"{PREFIX}b", "other"))
    for folder in (left, held, other):
        folder.mkdir()
        (folder / HELD).touch()
    with (held / HELD).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        remove_leftovers(tmp_path)
    assert [left.exists(), held.exists(), other.exists()] == [False, True, True]
