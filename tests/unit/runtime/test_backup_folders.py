"""The folder in which copies are made for backups."""

from __future__ import annotations

from pathlib import Path

from jobline_server.runtime.backup_folders import (
    empty,
    name_of,
    remove_empty,
    take_unfinished,
)

STORE = "0123456789abcdef"


def test_names_are_in_the_order_of_their_times() -> None:
    """Of one store and of several; each is that of its moment and store."""
    assert name_of(1_777_777_777_042, "ab") == "20260503T030937.042Z-ab"
    names = [name_of(at_ms, "ab") for at_ms in (0, 999, 1_000, 1_777_777_777_042)]
    assert names == sorted(names)


def test_unfinished_ones_are_named_and_their_copies_are_gone(tmp_path: Path) -> None:
    """Their folders stay, so that they are named until the destination has forgotten them."""
    folder = tmp_path / "backup"
    assert take_unfinished(folder) == ()
    first, second = name_of(0, STORE), name_of(1, STORE)
    for name in (second, first):
        (folder / name).mkdir(parents=True)
        (folder / name / "jobline.db").write_bytes(b"x")
    (folder / "file").write_bytes(b"x")
    for _ in range(2):
        assert take_unfinished(folder) == (first, second)
        assert [path.name for path in sorted(folder.rglob("*"))] == [first, second, "file"]


def test_what_others_have_put_there_stays(tmp_path: Path) -> None:
    """Folders of other names, and what a link of such a name leads to."""
    folder, elsewhere = tmp_path / "backup", tmp_path / "elsewhere"
    for other in (folder / "by-hand", elsewhere):
        other.mkdir(parents=True)
        (other / "jobline.db").write_bytes(b"x")
    (folder / name_of(0, STORE)).symlink_to(elsewhere)
    assert take_unfinished(folder) == ()
    assert (folder / "by-hand" / "jobline.db").exists()
    assert (elsewhere / "jobline.db").exists()


def test_a_folder_is_removed_unless_anything_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    (folder / "one").mkdir(parents=True)
    remove_empty(folder)
    assert (folder / "one").exists()
    remove_empty(folder / "one")
    for _ in range(2):
        remove_empty(folder)
        assert not folder.exists()


def test_folder_that_is_gone_is_empty(tmp_path: Path) -> None:
    empty(tmp_path / "none")
