"""Directories on which no server can start: logged in one line, and nothing in them is changed."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import sqlite3
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from shutil import copy, copytree

import pytest

from jobline_server import memory
from jobline_server.config import load_settings
from jobline_server.serving import EXIT_CANNOT_START, run
from jobline_server.testing import running_server
from jobline_server.testing.embedded import FOR_TESTS


def foreign(file: Path) -> None:
    """A database of another program, in a WAL mode as ours is."""
    made = file.parent.parent / "made"
    database = sqlite3.connect(made)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE mine (number)")
    database.close()
    # Opened where it belongs, it would take away the write-ahead log that lies there.
    copy(made, file)


def foreign_beside_a_short_wal(data: Path) -> None:
    """What is left if one file of ours was overwritten, and one copied in part."""
    foreign(data / "jobline.db")
    (data / "jobline.db-wal").write_bytes((data / "wal").read_bytes()[:200])


def of_text(file: Path) -> None:
    file.write_text("not a database " * 1_000)


def directory(file: Path) -> None:
    file.unlink(missing_ok=True)
    file.mkdir()


CASES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a database of something else": (lambda data: foreign(data / "jobline.db"), "something else"),
    "the same beside a short log": (foreign_beside_a_short_wal, "something else"),
    "finished.db is something else": (lambda data: foreign(data / "finished.db"), "something else"),
    "jobline.db is text": (lambda data: of_text(data / "jobline.db"), "not a database"),
    "finished.db is text": (lambda data: of_text(data / "finished.db"), "finished.db"),
    "jobline.db is a directory": (lambda data: directory(data / "jobline.db"), "jobline.db"),
    "finished.db is a directory": (lambda data: directory(data / "finished.db"), "finished.db"),
    "its log is a directory": (lambda data: directory(data / "jobline.db-wal"), "jobline.db"),
    "promise is a directory": (lambda data: directory(data / "promise"), "promise: is a directory"),
    "lock is a directory": (lambda data: directory(data / "lock"), "lock: is a directory"),
}


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The collector and the log stay as they are."""
    monkeypatch.setattr(memory, "tune", lambda: None)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def start(data: Path, capfd: pytest.CaptureFixture[str], **more: str) -> str:
    """Returns why a server cannot start, the only line of its log."""
    settings = load_settings({**FOR_TESTS, "data": data, "log_format": "json", **more})
    assert run(settings, lambda _: None) == EXIT_CANNOT_START
    out, said = capfd.readouterr()
    (line,) = said.splitlines()
    told = json.loads(line)
    assert (out, told["event"], told["level"]) == ("", "cannot start", "critical")
    return str(told["why"])


@pytest.fixture(scope="module")
async def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that a server has used; `wal` is what its log was."""
    data = tmp_path_factory.mktemp("used") / "data"
    async with running_server(data=data):
        log = (data / "jobline.db-wal").read_bytes()
    (data / "wal").write_bytes(log)
    return data


@pytest.mark.parametrize("what", CASES)
def test_what_is_no_store_is_said_in_a_line(
    used: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], what: str
) -> None:
    """Trial E9: "cannot start", one line, code 2, no traceback of any thread; files stay."""
    spoil, why = CASES[what]
    data = tmp_path / "data"
    data.mkdir()
    for file in used.iterdir():
        copy(file, data)
    spoil(data)
    before = {file: file.stat().st_size for file in data.glob("*.db")}

    assert why in start(data, capfd)

    assert {file: file.stat().st_size for file in before} == before


def test_a_file_in_the_directorys_place_is_said_in_a_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Trial E9: so is a directory that is none."""
    (tmp_path / "data").write_text("not a directory")
    assert "cannot be made a directory" in start(tmp_path / "data", capfd)


async def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    """Payloads are private, whatever the umask."""
    before = os.umask(0o022)
    try:
        async with running_server(data=tmp_path / "data"):
            modes = {
                file.name: oct(file.stat().st_mode & 0o777)
                for file in (tmp_path / "data").iterdir()
            }
    finally:
        os.umask(before)
    assert set(modes.values()) == {"0o600"}, modes
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("setting", ["listen", "http"])
def test_a_port_that_is_taken_leaves_no_new_store(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], setting: str
) -> None:
    """The next start would use what nobody has asked for. What was there stays."""
    kept = tmp_path / "kept"
    kept.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        history = str(tmp_path / "history")
        for data in (tmp_path / "new" / "data", kept):
            said = start(data, capfd, history=history, **{setting: address})
            assert said.startswith(f"{address}: cannot listen there (address already in use)")
    assert list(tmp_path.rglob("*")) == [kept]


async def test_a_port_that_is_taken_changes_no_store(
    used: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    copytree(used, tmp_path / "data")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        said = await asyncio.to_thread(start, tmp_path / "data", capfd, listen=address)
    assert said.startswith(f"{address}: cannot listen there (address already in use)")
    assert {"jobline.db", "finished.db"} <= {file.name for file in (tmp_path / "data").iterdir()}


def test_grpc_and_http_at_one_port_are_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    said = start(tmp_path / "data", capfd, listen=address, http=address)
    assert said == f"{address}: gRPC and HTTP need a port each"
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("setting", ["backup_to", "history"])
@pytest.mark.parametrize("below", ["", "backup", "history", "../data/x"])
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_destinations_in_the_data_directory_are_refused_before_anything_is_opened(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], setting: str, below: str, scheme: str
) -> None:
    """The process ends, too: its threads kept it alive once. `history` there is the server's own
    directory of files that wait for the destination.
    """
    data = tmp_path / "data"
    to = f"{scheme}{data}/{below}"
    said = start(data, capfd, **{setting: to})
    assert said == f"{setting}: {to} is in the data directory, and would be lost with it"
    assert not data.exists()


HISTORY = "jobline_server.history_port"  # which needs numpy and pyarrow
NEEDS = "install it in a checkout of Jobline: pip install './clients/python[cli]'"


@pytest.mark.parametrize(
    ("missing", "setting", "value", "said"),
    [
        (HISTORY, "history", "h", f"history: needs the extra (*): {NEEDS} '.[history]'"),
        ("s3fs", "history", "s3://b/x", f"history: s3://b/x: needs the extra s3: {NEEDS} '.[s3]'"),
        ("s3fs", "backup_to", "s3://b", f"backup_to: s3://b: needs the extra s3: {NEEDS} '.[s3]'"),
        (
            "gcsfs",
            "backup_to",
            "gs://u:p@b",
            "backup_to: gs://***@b: needs gcsfs: pip install gcsfs",
        ),
        ("", "backup_to", "odd://b", "backup_to: odd://b: odd is no protocol that fsspec knows*"),
    ],
)
def test_what_is_not_installed_is_said_with_how_to_install_it(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    missing: str,
    setting: str,
    value: str,
    said: str,
) -> None:
    """At the start: the first backup would fail at night."""
    if missing:
        monkeypatch.setitem(sys.modules, missing, None)
    data = tmp_path / "data"
    assert fnmatchcase(start(data, capfd, **{setting: value}), said.replace("[", "[[]"))
    assert not data.exists()
