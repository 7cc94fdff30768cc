"""A disk that is full: definite, and survived. Acks go on from the ballast, and it recovers by
itself."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from jobline_server.storage.ended_store import EndedQuery, RemoveEnded
from jobline_server.storage.sqlite.ballast import LAST_PART, wal_bytes_max
from jobline_server.storage.sqlite.connection import WAL_BYTES_DEFAULT, DatabaseSettings
from jobline_server.storage.sqlite.directory import stores_in
from jobline_server.storage.sqlite.ended_store import SqliteEndedJobStore
from jobline_server.storage.sqlite.store import SqliteSettings, SqliteStore
from jobline_server.storage.store import CommitUnknown, DiskFull, JournalRow
from tests.small_disk import fill, mounted
from tests.storage.ended_reference import ids_of, put
from tests.storage.rows import Writer, blobs_of, checkpoint, items_of, job, opened
from tests.storage.sqlite_stores import Make

MIB = 1 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    with mounted(tmp_path / "disk", 8) as disk:
        yield disk


FULL_DISK = SqliteSettings(
    ballast_bytes=2 * MIB,
    low_space_bytes=MIB,
    database=DatabaseSettings(wal_bytes=MIB // 2),
)


@pytest.mark.root
async def test_ballast_carries_acks_over_a_full_disk(small_disk: Path, make: Make) -> None:
    store = make(FULL_DISK, small_disk / "data")
    writer = await opened(store)
    assert store.space.ballast_stands()
    assert store.space.free_bytes() > FULL_DISK.low_space_bytes
    other = fill(small_disk)
    assert store.space.free_bytes() < FULL_DISK.low_space_bytes
    done = 0
    while store.space.ballast_stands():
        await store.commit([writer.row(b"ack" * 100)])
        done += 1
    for _ in range(20):  # acks go on
        await store.commit([writer.row(b"ack" * 100)])
    assert not await store.space.restore_ballast(), "there is no room for it yet"
    other.unlink()
    assert await store.space.restore_ballast()
    assert store.space.ballast_stands()
    assert await blobs_of(store) == writer.blobs
    await store.close()
    store = make(FULL_DISK, small_disk / "data")
    await opened(store)
    assert len(await blobs_of(store)) == done + 20


async def commit_until_full(store: SqliteStore, writer: Writer) -> JournalRow:
    """The row that did not fit."""
    while True:
        row = writer.row(b"x" * 100_000)
        try:
            await store.commit([row])
        except DiskFull:
            return row


@pytest.mark.root
async def test_same_rows_are_committed_when_there_is_room_again(
    small_disk: Path, make: Make
) -> None:
    store = make(FULL_DISK, small_disk / "data")
    writer = await opened(store)
    other = fill(small_disk)
    row = await commit_until_full(store, writer)
    assert not store.space.ballast_stands(), "it was given up before anything was refused"
    for _ in range(3):
        with pytest.raises(DiskFull):
            await store.commit([row], {0: 77_777})
    assert await blobs_of(store) == writer.blobs[:-1], "a refused commit left nothing"
    other.unlink()
    await store.commit([row], {0: 77_777})
    await store.commit([writer.row(b"after")])
    await store.close()
    store = make(FULL_DISK, small_disk / "data")
    after = await opened(store)
    assert await blobs_of(store) == writer.blobs
    assert after.offset == writer.offset


@pytest.mark.root
async def test_checkpoint_on_a_full_disk_is_refused_and_can_be_repeated(
    small_disk: Path, make: Make
) -> None:
    store = make(FULL_DISK, small_disk / "data")
    writer = await opened(store)
    await store.commit([writer.row(b"a")])
    other = fill(small_disk)
    rows = [job(key, b"x" * 50_000) for key in range(100)]
    with pytest.raises(DiskFull):
        await store.stage(0, writer.epoch, 1, rows, [])
    assert store.space.ballast_stands(), "a checkpoint can wait; the ballast is for acks"
    await store.commit([writer.row(b"b")])
    other.unlink()
    await checkpoint(store, writer, rows[:20])
    assert len(await items_of(store)) == 20
    await store.commit([writer.row(b"c")])
    assert await blobs_of(store) == [b"c"]


@pytest.mark.root
async def test_start_with_little_room_goes_without_ballast(small_disk: Path, make: Make) -> None:
    """It would fit, and leave nothing for anybody else."""
    settings = replace(FULL_DISK, ballast_bytes=6 * MIB, low_space_bytes=3 * MIB)
    store = make(settings, small_disk / "data")
    writer = await opened(store)
    assert not store.space.ballast_stands()
    await store.commit([writer.row(b"a")])
    assert (small_disk / "data" / "ballast").stat().st_size == 6 * MIB // LAST_PART, "what fits"


@pytest.mark.parametrize("number", [errno.EDQUOT, errno.ENOSPC])
async def test_an_error_of_a_write_is_a_full_disk_where_nothing_else_has_room(
    make: Make, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Trial E10: SQLite does not tell a quota from a broken disk; a file beside it does."""

    class Full(sqlite3.Connection):
        is_full = False

        def execute(self, sql: str, *parameters: object) -> sqlite3.Cursor:
            if self.is_full and sql.startswith("INSERT"):
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
                raise error
            return super().execute(sql, *parameters)  # type: ignore[arg-type]  # handed on

    def no_room(*_: object) -> int:
        raise OSError(number, "no room")

    store = make(replace(FULL_DISK, ballast_bytes=0, database=DatabaseSettings(factory=Full)))
    writer = await opened(store)
    row = writer.row(b"x")
    monkeypatch.setattr(Full, "is_full", True)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", no_room)
        with pytest.raises(DiskFull):
            await store.commit([row])
    monkeypatch.setattr(Full, "is_full", False)
    await store.commit([row])
    monkeypatch.setattr(Full, "is_full", True)
    with pytest.raises(CommitUnknown):
        await store.commit([writer.row(b"y")])


@pytest.mark.root
async def test_last_part_of_the_ballast_is_kept_for_what_makes_room(
    small_disk: Path, make: Make
) -> None:
    """Trial B6: acks take the first part; deletes find the last, whatever filled the disk."""
    store = make(FULL_DISK, small_disk / "data")
    writer = await opened(store)
    fill(small_disk)
    row = await commit_until_full(store, writer)
    assert (small_disk / "data" / "ballast").stat().st_size == 2 * MIB // LAST_PART
    with pytest.raises(DiskFull):
        await store.commit([row])
    assert await store.space.give_up_ballast(last=True)
    await store.commit([row])
    assert not await store.space.give_up_ballast(last=True), "there is no more of it"


@pytest.mark.root
async def test_files_give_back_what_is_free_in_them(small_disk: Path, make: Make) -> None:
    """Trial B6: a disk that the store's own rows filled has room again once they are deleted."""
    store = make(FULL_DISK, small_disk / "data")
    writer = await opened(store)
    while store.space.ballast_stands():
        await store.commit([writer.row(b"x" * 100_000)])
    await checkpoint(store, writer, [])
    full = store.space.free_bytes()
    while await store.truncate(0, 10):
        pass
    while await store.space.shrink():
        pass
    assert store.space.free_bytes() > full + 3 * MIB
    assert await store.space.restore_ballast()
    await store.commit([writer.row(b"after")])
    assert await blobs_of(store) == [b"after"]


@pytest.mark.root
async def test_a_disk_is_full_where_a_database_has_no_room_for_its_wal(
    small_disk: Path, make: Make
) -> None:
    """Before a write has found it so: what the WAL grows by until then is all needed again."""
    store = make(FULL_DISK, small_disk / "data")
    writer = await opened(store)
    other = fill(small_disk)
    os.truncate(other, other.stat().st_size - 3 * MIB // 2)
    while store.space.ballast_stands():
        await store.commit([writer.row(b"x" * 50_000)])
        await store.database.wait_moved()
    assert (small_disk / "data" / "ballast").stat().st_size == 2 * MIB, "acks have all of it"
    assert store.space.free_bytes() > 0
    assert not await store.space.restore_ballast()
    other.unlink()
    assert await store.space.restore_ballast()


def test_a_wal_is_no_larger_than_what_a_full_disk_has_room_for(tmp_path: Path) -> None:
    """The last part of a small ballast must have room to move it."""
    for mib, wal_bytes in ((64, WAL_BYTES_DEFAULT), (10, 10 * MIB // 8), (1, MIB // 2)):
        assert wal_bytes_max(mib * MIB) == wal_bytes
    store = stores_in(tmp_path, SqliteSettings(ballast_bytes=10 * MIB)).store
    assert isinstance(store, SqliteStore)
    assert store._settings.database.wal_bytes == 10 * MIB // 8


async def commit_and_fold(store: SqliteStore, writer: Writer) -> None:
    """A row that is in a checkpoint at once."""
    await store.commit([writer.row(b"x" * 100_000)])
    await checkpoint(store, writer, [])
    await store.truncate(0, 10)


@pytest.mark.root
async def test_a_file_that_need_not_grow_makes_room_for_one_that_must(small_disk: Path) -> None:
    """A disk was full for good where all of the ballast was used up: what is free in a file could
    not be returned, as that takes a page of the WAL, and the other file was not asked."""
    in_wal = DatabaseSettings(wal_bytes=64 * MIB)
    store = SqliteStore(small_disk, replace(FULL_DISK, ballast_bytes=0, database=in_wal))
    finished = SqliteEndedJobStore(small_disk, in_wal, beside=store)
    writer = await opened(store)
    await finished.open()
    try:
        # The finished jobs are in the WAL alone, and the room they had is free there.
        await finished.write([put(i, blob=b"x" * 100_000) for i in range(10, 30)])
        await finished.write([RemoveEnded(i, 1) for i in range(10, 30)])
        # The other database grows once; then its WAL grows alone, with the same pages.
        await commit_and_fold(store, writer)
        await store.database.empty_wal()
        for _ in range(20):
            await commit_and_fold(store, writer)
        fill(small_disk)
        while await store.space.shrink():
            pass
        await commit_and_fold(store, writer)
    finally:
        await finished.close()
        await store.close()


@pytest.mark.root
async def test_start_on_a_full_disk_takes_the_ballast(small_disk: Path, make: Make) -> None:
    """Trial B6: what an earlier process set aside carries the next one over its start."""
    store = make(FULL_DISK, small_disk / "data")
    await opened(store)
    await store.close()
    fill(small_disk)
    store = make(FULL_DISK, small_disk / "data")
    writer = await opened(store)
    await store.commit([writer.row(b"ack")])
    assert await blobs_of(store) == [b"ack"]


@pytest.mark.root
async def test_finished_file_on_a_full_disk_refuses_and_goes_on(small_disk: Path) -> None:
    finished = SqliteEndedJobStore(small_disk, DatabaseSettings(wal_bytes=MIB // 2))
    await finished.open()
    try:
        await finished.write([put(1)])
        other = fill(small_disk)
        large = [put(i, blob=b"x" * 100_000) for i in range(10, 40)]
        with pytest.raises(DiskFull):
            await finished.write(large)
        other.unlink()
        await finished.write(large)
        await finished.sync()
        assert ids_of(await finished.list(EndedQuery())) == [1, *range(10, 40)]
    finally:
        await finished.close()
