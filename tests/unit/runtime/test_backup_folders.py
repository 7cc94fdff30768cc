"""The folder in which copies are made for backups."""

from __future__ import annotations

from pathlib import Path

from jobline_server.runtime.backup_folders import empty, name_of, take_unfinished


def test_names_are_in_the_order_of_their_times() -> None:
    """Of one store and of several; each is that of its moment and store."""
    assert name_of(1_777_777_777_042, "ab") == "20260503T030937.042Z-ab"
    names = [name_of(at_ms, "ab") for at_ms in (0, 999, 1_000, 1_777_777_777_042)]
    assert names == sorted(names)


def test_unfinished_ones_are_named_and_their_copies_are_gone(tmp_path: Path) -> None:
    """Their folders stay, so that they are named until the destination has forgotten them."""
    folder = tmp_path / "backup"
    assert take_unfinished(folder) == ()
    for name in ("b", "a"):
        (folder / name).mkdir(parents=True)
        (folder / name / "jobline.db").write_bytes(b"x")
    (folder / "file").write_bytes(b"x")
    for _ in range(2):
        assert take_unfinished(folder) == ("a", "b")
        assert [path.name for path in sorted(folder.rglob("*"))] == ["a", "b", "file"]


def test_folder_that_is_gone_is_empty(tmp_path: Path) -> None:
    empty(tmp_path / "none")
