"""The file that keeps how far a watch is."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jobline._position_file import PositionFile


def test_a_position_is_kept(tmp_path: Path) -> None:
    file = PositionFile(tmp_path / "position")
    assert file.load() == ""
    file.save("a")
    file.save("b")
    assert PositionFile(file.path).load() == "b"
    assert list(tmp_path.iterdir()) == [file.path]


def test_a_save_beside_one_that_nobody_waits_for_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cleanup that is stopped while a thread saves, saves again: both meant the same new file."""
    file = PositionFile(tmp_path / "position")
    writes, goes_on = threading.Event(), threading.Event()

    def fsync(_: int) -> None:
        if not writes.is_set():
            writes.set()
            goes_on.wait()

    monkeypatch.setattr(os, "fsync", fsync)
    with ThreadPoolExecutor() as threads:
        first = threads.submit(file.save, "a")
        writes.wait()
        second = threads.submit(file.save, "b")
        # Long enough for a save that waits for nothing; one that waits its turn is not done.
        try:
            with pytest.raises(TimeoutError):
                second.result(timeout=0.2)
        finally:
            goes_on.set()
        first.result()
        second.result()
    assert file.load() == "b"
