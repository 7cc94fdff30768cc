"""`jobline backup` and `jobline restore`, as operators see them."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from jobline import Client
from jobline.cli.exit_codes import Exit
from jobline_server.offline.backups.manifest import decode, encode
from jobline_server.runtime.backup_copy import CopyMaker
from jobline_server.runtime.backups import Backups
from jobline_server.testing import running_server_in_thread
from tests.cli.conftest import Ran
from tests.cli.guarded import guarded_server, run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ran]:
    """Where backups are, and what `jobline backup` said of the one that is there."""
    folder = tmp_path_factory.mktemp("backed-up")
    with running_server_in_thread(folder / "data", backup_to=str(folder / "to")) as server:
        with Client(server.address) as client:
            client.push_many("mail", [{"n": number} for number in range(100)])
        ended = run("backup", "--server", server.address)
        status = run("backup", "--server", server.address, "--status")
        assert "newest whole one" in status.out
        assert str(folder / "to") in status.out
        # What `restore` takes.
        assert name_of(folder / "to") in status.out
    return folder / "to", ended


def name_of(to: Path) -> str:
    (found,) = (path.name for path in to.iterdir() if path.is_dir())
    return found


def test_one_is_made_and_restored(made: tuple[Path, Ran], tmp_path: Path) -> None:
    """A server on the new directory has the jobs, and `jobline verify` finds it whole."""
    to, ended = made
    assert ended.code == Exit.OK, ended.err
    assert ended.out.startswith(f"backup {name_of(to)} is whole: ")
    data = tmp_path / "new"
    restored = run("restore", to, data)
    assert restored.code == Exit.OK, restored.err
    assert restored.out.startswith(f"{data} has the state of ")
    assert f"Start it: jobline serve --data {data}" in restored.out
    assert run("verify", data).code == Exit.OK
    with running_server_in_thread(data) as server, Client(server.address) as client:
        assert client.queues.get("mail").counts.ready == 100


def test_json(made: tuple[Path, Ran], tmp_path: Path) -> None:
    """One document each; the backup by its own name, too."""
    to, _ = made
    restored = run("restore", to / name_of(to), tmp_path / "new", "--json")
    assert restored.code == Exit.OK, restored.err
    assert restored.document["name"] == name_of(to)
    assert restored.document["data"] == str(tmp_path / "new")
    assert restored.document["skips_all_ids"]
    refused = run("restore", to, tmp_path / "new", "--json")
    assert "is not empty" in json.loads(refused.err)["error"]["message"]


def test_the_newest_is_taken_also_after_a_clock_that_was_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name sorts first for ever, and has none of the jobs that came after it."""
    to, now_ms = tmp_path / "to", Backups._now_ms
    with (
        running_server_in_thread(tmp_path / "data", backup_to=str(to)) as server,
        Client(server.address) as client,
    ):
        for clocked in (Backups, CopyMaker):
            monkeypatch.setattr(clocked, "_now_ms", lambda self: now_ms(self) + 86_400_000)
        ahead = run("backup", "--server", server.address, "--json").document["name"]
        monkeypatch.undo()
        client.push("mail", {"n": 1})
        newest = run("backup", "--server", server.address, "--json").document["name"]
    assert ahead > newest
    plain = run("restore", to, tmp_path / "new")
    assert plain.out.startswith(f"{newest} was taken: its journal is the furthest of 2 backups\n")
    assert f"Later by name, of a clock that was ahead: 1, such as {ahead}\n" in plain.out
    document = run("restore", to, tmp_path / "as-json", "--json").document
    assert (document["name"], document["taken_of"]) == (newest, 2)
    assert document["later_named"] == [ahead]
    named = run("restore", to / ahead, tmp_path / "named")
    assert "was taken" not in named.out
    assert "was made by a clock so far ahead" in named.err
    with running_server_in_thread(tmp_path / "new") as server, Client(server.address) as client:
        assert client.queues.get("mail").counts.ready == 1


def test_a_directory_that_is_not_empty(made: tuple[Path, Ran], tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("mine")
    ended = run("restore", made[0], tmp_path)
    assert ended.code == Exit.REFUSED
    assert f"error: {tmp_path} is not empty: it has letter" in ended.err
    assert "Restore into a new directory" in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["letter"]


def test_a_file_in_place_of_the_directory(made: tuple[Path, Ran], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = run("restore", made[0], tmp_path / "file")
    assert ended.code == Exit.USAGE
    assert "is no directory" in ended.err


def test_no_such_backup(tmp_path: Path) -> None:
    """Neither an empty directory nor one that is not there; nothing is made."""
    (tmp_path / "empty").mkdir()
    for where in ("empty", "nowhere"):
        ended = run("restore", tmp_path / where, tmp_path / "new")
        assert ended.code == Exit.NOT_FOUND, ended.err
        assert f"there is no whole backup at {tmp_path / where}" in ended.err
        assert not (tmp_path / "new").exists()
        assert not (tmp_path / "nowhere").exists()


def test_a_place_that_nothing_here_reads(tmp_path: Path) -> None:
    for where in ("odd://bucket/backups", "s3://", "file://"):
        ended = run("restore", where, tmp_path / "new")
        assert ended.code in {Exit.FAILED, Exit.USAGE, Exit.NOT_FOUND}, ended.err
        assert ended.err.startswith("error: "), ended.err
        assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["jobline.db", "finished.db", "manifest.json"])
def test_a_damaged_backup(made: tuple[Path, Ran], tmp_path: Path, name: str) -> None:
    to = Path(shutil.copytree(made[0], tmp_path / "to"))
    file = to / name_of(to) / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    file.write_bytes(content)
    ended = run("restore", to / name_of(to), tmp_path / "new")
    assert ended.code == Exit.FAILED
    assert f"error: {name} is damaged: " in ended.err
    assert not list((tmp_path / "new").iterdir()) if (tmp_path / "new").exists() else True


def test_the_newest_is_damaged(made: tuple[Path, Ran], tmp_path: Path) -> None:
    """Nobody named it: its name is said, and another one, which is restored then."""
    to = Path(shutil.copytree(made[0], tmp_path / "to"))
    older, data = name_of(to), tmp_path / "new"
    with (to / older / "jobline.db").open("r+b") as file:
        file.write(b"odd")
    alone = run("restore", to, data)
    assert alone.code == Exit.FAILED
    assert alone.err == f"error: {to / older}: jobline.db is damaged: its checksum is wrong\n"

    shutil.rmtree(to)
    shutil.copytree(made[0], to)
    # Of one position in the journal, the later name is the newest.
    newest = older.replace(older[:4], "9999", 1)
    shutil.copytree(to / older, to / newest)
    manifest = to / newest / "manifest.json"
    manifest.write_bytes(encode(replace(decode(manifest.read_bytes()), name=newest)))
    with (to / newest / "jobline.db").open("r+b") as file:
        file.write(b"odd")
    ended = run("restore", to, data)
    assert ended.code == Exit.FAILED
    assert ended.err.splitlines() == [
        f"error: {to / newest}: jobline.db is damaged: its checksum is wrong",
        f"Restore an older one by its name: jobline restore {to / older} {data}",
    ]
    assert run("restore", to / older, data).code == Exit.OK


@pytest.mark.parametrize(("url", "library"), [("s3://bucket", "s3fs"), ("gs://bucket", "gcsfs")])
def test_a_url_whose_library_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, library: str
) -> None:
    """Not with the code of a backup that is damaged."""
    monkeypatch.setitem(sys.modules, library, None)
    ended = run("restore", url, tmp_path / "new")
    assert ended.code == Exit.USAGE
    assert "install" in ended.err


def test_one_that_is_being_made_refuses_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not done is not OK: a CronJob tries again, and shows a failure if that lasts."""
    goes_on, make = Event(), CopyMaker.make

    async def held(self: CopyMaker, folder: Path) -> int:
        await asyncio.to_thread(goes_on.wait)
        return await make(self, folder)

    monkeypatch.setattr(CopyMaker, "make", held)
    with running_server_in_thread(tmp_path / "data", backup_to=str(tmp_path / "to")) as server:
        try:
            begun = run("backup", "--server", server.address, "--no-wait")
            second = run("backup", "--server", server.address)
        finally:
            goes_on.set()
    assert begun.code == Exit.OK, begun.err
    assert second.code == Exit.REFUSED
    assert "a backup is being made" in second.err


def test_a_server_without_a_destination(jobline) -> None:
    ended = jobline("backup")
    assert ended.code == Exit.REFUSED
    assert "--backup-to" in ended.err
    assert "none: the server was started without one" in jobline("backup", "--status").out


def test_who_may_not(tmp_path: Path) -> None:
    """A backup has all that there is: it needs `admin`, and so does its state."""
    with guarded_server(tmp_path, backup_to=str(tmp_path / "to")) as server:
        for flags in ([], ["--status"], ["--no-wait"]):
            ended = run("backup", *flags, *server.flags("manage"))
            assert ended.code == Exit.REFUSED, ended.err
            assert "key:manage has no role with the verb admin" in ended.err
    assert not (tmp_path / "to").exists() or not list((tmp_path / "to").iterdir())


def test_a_destination_that_cannot_be_written(tmp_path: Path) -> None:
    """The server goes on, and the command says why."""
    to = tmp_path / "to"
    with running_server_in_thread(tmp_path / "data", backup_to=str(to)) as server:
        shutil.rmtree(to, ignore_errors=True)
        to.write_text("in the way")
        ended = run("backup", "--server", server.address)
        assert ended.code == Exit.FAILED, ended.out
        assert "the backup failed: " in ended.out
        assert run("stats", "--server", server.address).code == Exit.OK
