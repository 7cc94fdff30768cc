"""The spool: what is durable, and what goes when there is no room."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from jobline_server.history import spool as spool_module
from jobline_server.history.destination import Directory, destination_of
from jobline_server.history.files import Encoded
from jobline_server.history.spool import Spool


def file(name: str, size: int = 10) -> Encoded:
    return Encoded(f"events/date=2026-01-01/hour=01/{name}.parquet", b"x" * size, 1, 1_000)


def test_files_and_offsets_outlive_the_process(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1_000)
    assert spool.exported() == {}
    assert spool.put(file("a"))
    spool.save_exported({0: 7, 3: 9})
    (tmp_path / "spool" / ".half.parquet.tmp").write_bytes(b"x")
    again = Spool(tmp_path, 1_000)
    assert (len(again), again.bytes, again.exported()) == (1, 10, {0: 7, 3: 9})
    assert not list(tmp_path.rglob("*.tmp"))


def test_at_its_bound_the_oldest_files_go(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 25)
    for name in "abc":
        assert spool.put(file(name))
    found = spool.oldest()
    assert found is not None
    assert found[0].endswith("b.parquet")
    assert (len(spool), spool.bytes, spool.lost_files, spool.lost_bytes) == (2, 20, 1, 10)


def full_until(files_left: int, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full while there are more files than that."""
    write = spool_module.write_durably

    def write_if_there_is_room(path: Path, content: object) -> None:
        if len(list(root.rglob("*.parquet"))) > files_left:
            raise OSError(errno.ENOSPC, "full")
        write(path, content)

    monkeypatch.setattr(spool_module, "write_durably", write_if_there_is_room)


def test_on_a_full_disk_the_oldest_files_make_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path, 1_000)
    assert spool.put(file("a"))
    assert spool.put(file("b"))
    full_until(1, tmp_path, monkeypatch)
    assert spool.put(file("c"))
    assert (len(spool), spool.lost_files) == (2, 1)


def test_without_any_room_the_new_file_is_lost_and_the_queue_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path, 1_000)
    assert spool.put(file("a"))
    full_until(-1, tmp_path, monkeypatch)
    assert not spool.put(file("b"))
    assert (len(spool), spool.bytes, spool.lost_files, spool.lost_bytes) == (0, 0, 2, 20)


def test_any_other_error_is_raised_and_the_file_may_be_put_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path, 1_000)

    def broken(*_arguments: object) -> None:
        raise OSError(errno.EIO, "broken")

    with monkeypatch.context() as patched:
        patched.setattr(spool_module, "write_durably", broken)
        with pytest.raises(OSError, match="broken"):
            spool.put(file("a"))
    assert spool.put(file("a"))
    assert (len(spool), spool.lost_files) == (1, 0)


def test_a_file_that_was_sent_leaves_no_empty_folders(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1_000)
    spool.put(file("a"))
    found = spool.oldest()
    assert found is not None
    spool.remove(found[0])
    spool.remove(found[0])
    assert (spool.bytes, spool.oldest_ms(), list((tmp_path / "spool").rglob("date=*"))) == (
        0,
        [],
        [],
    )


def test_a_file_that_is_there_already_is_replaced(tmp_path: Path) -> None:
    """A start after a crash may make it again."""
    spool = Spool(tmp_path, 35)
    assert spool.put(file("a"))
    assert spool.put(file("b"))
    assert spool.put(file("b", 25))
    assert (len(spool), spool.bytes, spool.lost_files) == (2, 35, 0)


def test_what_had_to_go_before_is_not_lost_twice(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1_000)
    spool.put(file("a"))
    found = spool.oldest()
    assert found is not None
    assert spool.lose(found[0])
    assert not spool.lose(found[0])
    assert (spool.bytes, spool.lost_files, spool.lost_bytes) == (0, 1, 10)


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_directories_are_destinations(tmp_path: Path, form: str) -> None:
    (tmp_path / "a").write_bytes(b"content")
    destination = destination_of(form.format(tmp_path / "out"))
    assert isinstance(destination, Directory)
    for _ in range(2):
        destination.send("events/a.parquet", tmp_path / "a")
    assert (tmp_path / "out/events/a.parquet").read_bytes() == b"content"


@pytest.mark.parametrize("protocol", ["memory", "local"])
def test_urls_are_destinations(tmp_path: Path, protocol: str) -> None:
    """In memory as in an object store, and renamed as elsewhere."""
    fsspec = pytest.importorskip("fsspec")
    (tmp_path / "a").write_bytes(b"content")
    url = f"{protocol}://{tmp_path}/out"
    destination_of(url).send("events/a.parquet", tmp_path / "a")
    with fsspec.open(f"{url}/events/a.parquet") as stored:
        assert stored.read() == b"content"
    files, root = fsspec.core.url_to_fs(url)
    assert len(files.find(root)) == 1
