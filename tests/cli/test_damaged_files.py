"""`jobline verify` and `jobline inspect` on files that something has damaged: which, and how."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from jobline.cli.exit_codes import Exit
from tests.cli.test_offline import content_of, left

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


@pytest.mark.parametrize("damage", [directory, pipe, link, other_kind])
@pytest.mark.parametrize("name", ["jobline.db", "finished.db"])
def test_what_is_no_such_file_is_named(jobline, left, tmp_path, name, damage):
    """Nobody waits at a pipe."""
    store = Path(shutil.copytree(left["stopped"], tmp_path / "data"))
    damage(store / name)
    for command in ("verify", "inspect"):
        ended = jobline(command, store)
        assert ended.code == Exit.FAILED
        assert name in ended.err
        assert "Errno" not in ended.err


@pytest.mark.parametrize("damage", [directory, pipe, link])
@pytest.mark.parametrize("name", ["promise", "lock", "jobline.db-wal"])
def test_so_is_one_beside_the_databases(jobline, left, tmp_path, name, damage):
    store = Path(shutil.copytree(left["killed"], tmp_path / "data"))
    damage(store / name)
    ended = jobline("verify", store)
    assert ended.code == Exit.FAILED
    assert "Errno" not in ended.err
    assert name.removesuffix("-wal") in ended.out + ended.err


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
