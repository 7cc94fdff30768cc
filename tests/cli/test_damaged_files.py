"""`jobline verify` and `jobline inspect` on files that something has damaged: which, and how."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from jobline import AsyncClient
from jobline.cli.exit_codes import Exit
from jobline_server.offline.opening import find, opened
from jobline_server.storage.recovery_cases import PROMISED_BUT_MISSING
from jobline_server.testing import ServerProcess
from tests.cli.test_offline import content_of, left
from tests.cli.test_offline import spoil as spoil_with

__all__ = ["left"]  # the fixture

COMMANDS = (["verify"], ["verify", "--json"], ["inspect"], ["inspect", "--journal", "--json"])
Damage = Callable[[Path], object]


def directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def link(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.name)


def other_kind(file: Path) -> None:
    other = "finished.db" if file.name == "jobline.db" else "jobline.db"
    shutil.copy(file.with_name(other), file)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:60])


def noise(file: Path) -> None:
    file.write_bytes(random.Random(7).randbytes(40_000))


def letter(file: Path) -> None:
    file.write_text("Dear reader,\n" * 1_000)


def of_something_else(file: Path) -> None:
    file.unlink()
    spoil_with(file, "CREATE TABLE anything (x)")


ALL_KINDS = [
    *(directory, pipe, link, other_kind),
    *(empty, cut, noise, letter, of_something_else),
]


@pytest.mark.parametrize("damage", ALL_KINDS)
@pytest.mark.parametrize("name", ["jobline.db", "finished.db"])
def test_what_is_no_such_file_is_a_line_and_the_rest_is_checked(
    jobline, left, tmp_path, name, damage
):
    """Nobody waits at a pipe, and the other file is read to its end."""
    store = Path(shutil.copytree(left["stopped"], tmp_path / "data"))
    damage(store / name)
    ended = jobline("verify", store)
    assert ended.code == Exit.FAILED, ended.err
    [line] = [line for line in ended.out.splitlines() if line.split()[1] == name]
    assert line.startswith("\u2717")
    assert "Copy the directory" in ended.err
    assert ("ended jobs" if name == "jobline.db" else "items") in ended.out
    for said in ("Errno", "Traceback", str(store)):
        assert said not in ended.out
    lines = jobline("verify", store, "--json").lines
    assert [one["what"] for one in lines if one["health"] == "failed"] == [name]


@pytest.mark.parametrize("damage", ALL_KINDS)
@pytest.mark.parametrize("name", ["jobline.db", "finished.db"])
def test_inspect_names_it(jobline, left, tmp_path, name, damage):
    store = Path(shutil.copytree(left["stopped"], tmp_path / "data"))
    damage(store / name)
    ended = jobline("inspect", store)
    assert ended.code in {Exit.FAILED, Exit.USAGE}
    assert name in ended.err
    assert "Errno" not in ended.err


def test_all_files_at_once_are_a_line_each(jobline, left, tmp_path):
    store = Path(shutil.copytree(left["stopped"], tmp_path / "data"))
    for name in ("jobline.db", "finished.db", "promise"):
        noise(store / name)
    ended = jobline("verify", store)
    assert ended.code == Exit.FAILED
    whats = [line.split()[1] for line in ended.out.splitlines()]
    assert whats == ["jobline.db", "finished.db"]  # what is promised is in the first one


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
@pytest.mark.parametrize("name", ["jobline.db", "finished.db", "promise", "jobline.db-wal"])
def test_a_file_without_permission_is_a_line(jobline, left, tmp_path, name):
    store = Path(shutil.copytree(left["killed"], tmp_path / "data"))
    (store / name).chmod(0)
    ended = jobline("verify", store)
    assert ended.code == Exit.FAILED
    assert "permission denied" in ended.out
    assert len(ended.out.splitlines()) > 1


def test_a_file_that_cannot_be_read_is_a_line(jobline, left, tmp_path, monkeypatch):
    """As where permission is missing, for those who run this as root."""
    store = Path(shutil.copytree(left["killed"], tmp_path / "data"))
    opens = Path.open

    def refused(path, *how, **more):
        if path.name in {"jobline.db-wal", "finished.db"}:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opens(path, *how, **more)

    monkeypatch.setattr(Path, "open", refused)
    ended = jobline("verify", store)
    assert ended.code == Exit.FAILED
    assert [line.split()[1] for line in ended.out.splitlines()] == ["jobline.db", "finished.db"]
    assert "jobline.db-wal cannot be read: permission denied" in ended.out
    assert ended.out.count("permission denied") == 2


@pytest.mark.parametrize("name", ["jobline.db", "finished.db"])
def test_the_wal_of_another_file_is_damage(jobline, left, tmp_path, name):
    """Pages of one database in the place of those of another."""
    store = Path(shutil.copytree(left["killed"], tmp_path / "data"))
    other = "finished.db" if name == "jobline.db" else "jobline.db"
    shutil.copy(store / f"{other}-wal", store / f"{name}-wal")
    before = content_of(store)
    ended = jobline("verify", store)
    assert ended.code == Exit.FAILED, ended.out
    assert content_of(store) == before
    assert name in ended.out


@pytest.mark.parametrize("damage", [noise, letter, cut])
def test_a_wal_that_is_none_counts_as_empty(jobline, left, tmp_path, damage):
    """As for SQLite: then what was promised is missing, and that is said."""
    store = Path(shutil.copytree(left["killed"], tmp_path / "data"))
    damage(store / "jobline.db-wal")
    ended = jobline("verify", store)
    assert ended.code == Exit.FAILED
    assert "promise" in ended.out


def test_nothing_is_left_by_a_look_that_is_killed(left, tmp_path):
    """While the files are open there is no index beside them any more: nobody has to clear up."""
    store = Path(shutil.copytree(left["killed"], tmp_path / "data"))
    for index in store.glob("*-shm"):
        index.unlink()
    before = {path.name for path in store.iterdir()}
    assert before >= {"jobline.db-wal", "finished.db-wal"}
    for name in ("jobline.db", "finished.db"):
        with opened(find(store), name) as (connection, _):
            assert {path.name for path in store.iterdir()} == before
            found = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            assert found[0] > 0
    assert {path.name for path in store.iterdir()} == before


async def test_the_files_of_a_server_that_was_killed_are_whole(jobline, tmp_path):
    """All that was acknowledged is found, and the directory stays as the server left it."""
    server = ServerProcess(tmp_path / "data")
    await server.start()
    async with AsyncClient(server.address) as client:
        await client.push_many("mail", [{"n": number} for number in range(2_000)])
        await client.ack(*await client.pull("mail", max_jobs=500))
    await server.kill()
    before = content_of(server.data)
    ended = await asyncio.to_thread(jobline, "verify", server.data)
    assert ended.code == Exit.OK, ended.out + ended.err
    assert content_of(server.data) == before
    (server.data / "jobline.db-wal").unlink()
    ended = await asyncio.to_thread(jobline, "verify", server.data)
    assert ended.code == Exit.FAILED
    assert str(PROMISED_BUT_MISSING) in ended.out


@pytest.mark.parametrize("damage", [directory, pipe, link])
@pytest.mark.parametrize("name", ["promise", "lock", "jobline.db-wal"])
def test_so_is_one_beside_the_databases(jobline, left, tmp_path, name, damage):
    store = Path(shutil.copytree(left["killed"], tmp_path / "data"))
    damage(store / name)
    ended = jobline("verify", store)
    assert ended.code == Exit.FAILED
    assert "Errno" not in ended.out + ended.err
    assert name.removesuffix("-wal") in ended.out + ended.err
    assert name == "lock" or "ended jobs" in ended.out


def test_a_lock_that_leads_nowhere_makes_no_file(jobline, left, tmp_path):
    store = Path(shutil.copytree(left["stopped"], tmp_path / "data"))
    (store / "lock").unlink()
    (store / "lock").symlink_to("elsewhere")
    assert jobline("verify", store).code == Exit.FAILED
    assert not (store / "elsewhere").exists()


def spoil(choice: random.Random, file: Path) -> str:
    """Damages a file somehow; returns how."""
    data = bytearray(file.read_bytes())
    how = choice.choice(["truncate", "flip", "zero", "noise", "header"])
    page = 4_096 * choice.randrange(len(data) // 4_096 or 1)
    if how == "truncate":
        del data[choice.randrange(len(data)) :]
    elif how == "flip":
        data[choice.randrange(len(data))] ^= 1 << choice.randrange(8)
    elif how == "header":
        data[choice.randrange(min(len(data), 100))] ^= 1 << choice.randrange(8)
    else:
        data[page : page + 4_096] = bytes(4_096) if how == "zero" else choice.randbytes(4_096)
    file.write_bytes(data)
    return f"{how} {file.name}"


@pytest.mark.parametrize("seed", range(20))
def test_no_damage_is_a_traceback_or_changes_a_file(jobline, left, tmp_path, seed):
    """The fixture raises what is no exit."""
    choice = random.Random(seed)
    store = Path(shutil.copytree(left[choice.choice(["stopped", "killed"])], tmp_path / "data"))
    files = [
        file for file in sorted(store.iterdir()) if file.stat().st_size and file.name != "lock"
    ]
    how = spoil(choice, choice.choice(files))
    before = content_of(store)
    for command, *flags in COMMANDS:
        ended = jobline(command, store, *flags)
        said = ended.out + ended.err
        assert ended.code in {Exit.OK, Exit.FAILED, Exit.USAGE, Exit.REFUSED}, how
        assert not ended.code or any(
            one in said for one in ("jobline.db", "finished.db", "promise")
        )
        assert content_of(store) == before, how
