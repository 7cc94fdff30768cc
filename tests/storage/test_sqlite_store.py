"""What is SQLite's own in the store: settings, files, the lock, one hop a commit, and rot in
items."""

from __future__ import annotations

import asyncio
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jobline_server.storage.sqlite.connection import DatabaseSettings
from jobline_server.storage.sqlite.store import SqliteStore
from jobline_server.storage.store import StoreRefused
from tests.storage.rows import ID_BLOCK, Writer, blobs_of, job, opened
from tests.storage.sqlite_stores import SMALL, Make

# Settings.


async def test_settings_that_promises_rest_on_are_in_force(make: Make) -> None:
    store = make()
    await opened(store)
    wanted = {
        "page_size": 8_192,
        "auto_vacuum": 2,
        "locking_mode": "exclusive",
        "journal_mode": "wal",
        "synchronous": 2,
        "wal_autocheckpoint": 8_192,
        "secure_delete": 0,
        "cache_size": -32_768,
        "temp_store": 2,
        "cell_size_check": 1,
        "application_id": 0x4A424C4E,
        "user_version": 4,
    }
    for pragma, value in wanted.items():
        found = await store.database.run(
            lambda raw, name=pragma: raw.execute(f"PRAGMA {name}").fetchone()[0]  # type: ignore[misc]
        )
        assert found == value, pragma


async def test_setting_that_does_not_take_refuses_the_start(make: Make) -> None:
    """Predecessors: SQLite ran with `synchronous = OFF`."""

    class Forgetful(sqlite3.Connection):
        def execute(self, sql: str, *parameters: object) -> sqlite3.Cursor:
            return super().execute(sql.replace("synchronous = FULL", "synchronous = NORMAL"))

    settings = replace(SMALL, database=DatabaseSettings(factory=Forgetful))
    with pytest.raises(StoreRefused, match="synchronous is 1 and not FULL"):
        await make(settings).open(0)


COMMITS = """
import asyncio, pathlib, sys
from jobline_server.storage.sqlite.store import SqliteSettings, SqliteStore
from tests.storage.rows import opened

async def main():
    settings = SqliteSettings(ballast_bytes=0, low_space_bytes=0)
    store = SqliteStore(pathlib.Path(sys.argv[1]), settings)
    writer = await opened(store)
    for _ in range(int(sys.argv[2])):
        await store.commit([writer.row(b"x" * 200)])
    await store.close()

asyncio.run(main())
"""


def count_syncs(directory: Path, commits: int) -> int:
    counts = directory / f"{commits}.strace"
    command = ["strace", "-f", "-e", "trace=fsync,fdatasync", "-o", str(counts)]
    run = subprocess.run(
        [*command, sys.executable, "-c", COMMITS, str(directory / str(commits)), str(commits)],
        capture_output=True,
        check=False,
    )
    if b"ptrace" in run.stderr or b"PTRACE" in run.stderr:
        pytest.skip("strace may not trace here")
    assert run.returncode == 0, run.stderr.decode()
    return len(re.findall(r"fd?a?t?a?sync\(", counts.read_text()))


@pytest.mark.root
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace to see system calls")
def test_every_commit_enters_fsync(tmp_path: Path) -> None:
    """Beyond those of opening and closing there is one for each commit."""
    assert count_syncs(tmp_path, 30) - count_syncs(tmp_path, 10) == 20


# One hop.


async def test_commit_is_one_hop_and_one_statement(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    executed: list[str] = []

    class Counting(sqlite3.Connection):
        def execute(self, sql: str, *parameters: object) -> sqlite3.Cursor:
            executed.append(sql)
            return super().execute(sql, *parameters)  # type: ignore[arg-type]

    store = make(replace(SMALL, database=DatabaseSettings(factory=Counting)))
    one = await opened(store)
    two = Writer.of(await store.open_shard(1, 0, ID_BLOCK))
    hops: list[object] = []
    hop = store.database._on_thread

    def counted(work: Callable[[sqlite3.Connection], object]) -> object:
        hops.append(work)
        return hop(work)

    monkeypatch.setattr(store.database, "_on_thread", counted)
    executed.clear()
    await store.commit([one.row(b"a"), two.row(b"b")], {0: 99_999})
    assert (len(hops), len(executed)) == (1, 1)


async def test_caller_who_leaves_takes_nothing_along(make: Make) -> None:
    store = make()
    writer = await opened(store)
    rows = [writer.row(b"%d" % number) for number in range(3)]
    leaving = asyncio.ensure_future(store.commit([rows[0]]))
    await asyncio.sleep(0)
    leaving.cancel()
    await store.commit([rows[1]])
    await store.commit([rows[2]])
    assert await blobs_of(store) == [b"0", b"1", b"2"]


async def test_wal_stays_small_while_it_is_written(make: Make, tmp_path: Path) -> None:
    store = make(replace(SMALL, database=DatabaseSettings(wal_bytes=1 << 20)))
    writer = await opened(store)
    for _ in range(100):
        await store.commit([writer.row(b"x" * 100_000)])
    assert (tmp_path / "jobline.db-wal").stat().st_size < 3 << 20


async def test_slice_of_a_checkpoint_takes_as_long_as_the_pages_that_move_for_it(
    make: Make, tmp_path: Path
) -> None:
    """A checkpoint rests by how long its slices took."""
    store = make(replace(SMALL, database=DatabaseSettings(wal_bytes=100_000)))
    writer = await opened(store)
    before = (tmp_path / "jobline.db").stat().st_size
    await store.stage(writer.shard, writer.epoch, 1, [job(1, b"x" * 100_000)], [])
    assert (tmp_path / "jobline.db").stat().st_size >= before + 100_000


# Files and lock.


async def test_directory_is_made_and_private(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "b"
    store = SqliteStore(directory, SMALL)
    await store.open(0)
    assert directory.stat().st_mode & 0o777 == 0o700
    names = {file.name for file in directory.iterdir()}
    assert names == {"jobline.db", "jobline.db-wal", "promise", "ballast", "lock"}
    assert (directory / "ballast").stat().st_blocks * 512 >= 1 << 16, "it holds room, not a hole"
    await store.close()


async def test_directory_in_use_is_refused(make: Make) -> None:
    store = make()
    await opened(store)
    with pytest.raises(StoreRefused, match=r"in use by process [0-9]+;"):
        await make().open(0)
    await store.close()
    await make().open(0)


OPENS = """
import asyncio, pathlib, sys
from jobline_server.storage.sqlite.store import SqliteStore
asyncio.run(SqliteStore(pathlib.Path(sys.argv[1])).open(0))
"""


async def test_other_process_is_refused_even_if_the_file_was_read_here(
    make: Make, tmp_path: Path
) -> None:
    """Reading a file and closing it drops the process's POSIX lock on it, which is SQLite's."""
    await opened(make())
    shutil.copyfile(tmp_path / "jobline.db", tmp_path / "copy.db")
    run = subprocess.run(  # noqa: ASYNC221  # nothing else runs in this loop
        [sys.executable, "-c", OPENS, str(tmp_path)], capture_output=True, check=False, text=True
    )
    assert run.returncode != 0
    assert "a data directory serves one process" in run.stderr


async def test_database_that_sqlite_has_locked_is_refused(make: Make, tmp_path: Path) -> None:
    """A person with the sqlite3 shell, who knows nothing of our lock."""
    store = make()
    await opened(store)
    await store.close()
    person = sqlite3.connect(tmp_path / "jobline.db")
    person.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreRefused, match="locked"):
        await make().open(0)
    person.close()
