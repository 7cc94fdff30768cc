"""`SqliteEndedJobStore`: the `EndedJobStore` interface over finished.db, on a thread of its own, so
that reads of ended jobs never wait for a commit.

It runs with `synchronous=NORMAL`: a write is in the WAL and not fsynced. A power cut may lose the
newest writes, but no part of one. `sync` commits once with FULL, which fsyncs the whole WAL.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from jobline_server.storage.ended_store import (
    DeadGroup,
    EndedLookup,
    EndedOp,
    EndedPage,
    EndedQuery,
    EndedScan,
    EndedSpan,
    EndedTotals,
    OwnCount,
    PutEnded,
    PutOperation,
    RemoveQueue,
)
from jobline_server.storage.sqlite import (
    belonging,
    bootstrap,
    ended_ops,
    ended_queries,
    ended_scans,
)
from jobline_server.storage.sqlite.connection import Database, DatabaseSettings
from jobline_server.storage.sqlite.failures import transact
from jobline_server.storage.sqlite.files import make_directory, sync_directory
from jobline_server.storage.sqlite.losses import Losses
from jobline_server.storage.sqlite.minutes import SqliteMinuteStore
from jobline_server.storage.sqlite.operations import SqliteOperationStore
from jobline_server.storage.sqlite.pages import SQLITE_PAGE_BYTES
from jobline_server.storage.sqlite.store import SqliteStore
from jobline_server.storage.store import DataLoss, StoreRefused

T = TypeVar("T")

FINISHED_FILE = "finished.db"
FORMAT = bootstrap.Format(  # "JBLF"
    0x4A424C46,
    6,
    "finished_schema.sql",
    {number: f"finished_upgrade_{number + 1}.sql" for number in range(1, 6)},
)
# The most that one transaction writes: reads wait for it.
_SLICE_OPS = 500
_SLICE_BYTES = 8 << 20
_ROW_BYTES = SQLITE_PAGE_BYTES // 8
_WITH_BLOB = (PutEnded, PutOperation)


class SqliteEndedJobStore:
    """The finished.db of a directory. `open` first, after the store `beside` it, which holds the
    lock and the reserve of the directory.
    """

    def __init__(
        self,
        directory: Path,
        settings: DatabaseSettings | None = None,
        *,
        beside: SqliteStore | None = None,
    ) -> None:
        self._beside = beside
        self._losses = beside.losses if beside else Losses()
        self._directory = directory
        self._settings = replace(settings or DatabaseSettings(), synchronous="NORMAL")
        self._opened: Database | None = None
        self._written = False
        self.minutes = SqliteMinuteStore(lambda: self.database)
        self.operations = SqliteOperationStore(lambda: self.database)

    async def open(self) -> None:
        """See `EndedJobStore.open`."""
        make_directory(self._directory)
        file = self._directory / FINISHED_FILE
        try:
            self._opened = await Database.open(file, self._settings)
        except StoreRefused as refusal:
            belonging.put_aside(file, refusal, self._losses)
            self._opened = await Database.open(file, self._settings)
        sync_directory(self._directory)
        try:
            await self._opened.run(_prepare)
        except BaseException as failure:
            await self.close()
            if isinstance(failure, DataLoss):
                raise StoreRefused(f"{FINISHED_FILE}: {failure}") from failure
            raise
        if self._beside is not None:
            self._beside.space.add(self._opened)
            await self._beside.join(self)

    async def mark(self) -> belonging.EndedMark:
        """See `EndedFile.mark`."""
        return await self.database.run(belonging.mark)

    async def belong_to(self, identity: int) -> None:
        """See `EndedFile.belong_to`."""
        work = partial(belonging.belong_to, identity=identity)
        await self.database.transact(work, SQLITE_PAGE_BYTES)
        self._written = True
        await self.sync()

    async def write(self, ops: Sequence[EndedOp]) -> None:
        """See `EndedJobStore.write`."""
        self._written = self._written or bool(ops)
        for slice_ in _slices(ops):
            first = slice_[0]
            if isinstance(first, RemoveQueue):
                await self._remove_queue(first.queue)
            else:
                apply = partial(ended_ops.apply, ops=slice_)
                await self.database.transact(apply, _bytes_of(slice_))
                # Or the WAL would grow by all slices.
                await self.database.wait_moved()

    async def _remove_queue(self, queue: str) -> None:
        remove = partial(ended_ops.remove_queue, queue=queue, limit_rows=_SLICE_OPS)
        while await self.database.transact(remove, _SLICE_OPS * _ROW_BYTES):
            pass

    async def growth(self, size_bytes: int) -> int:
        """See `EndedJobStore.growth`."""
        return await self.database.growth(size_bytes)

    async def sync(self) -> None:
        """See `EndedJobStore.sync`."""
        if not self._written:
            return
        self._written = False
        try:
            await self.database.write(_commit_with_fsync, 0)
        except BaseException:
            self._written = True
            raise

    async def get_many(self, job_ids: Sequence[int]) -> EndedLookup:
        """See `EndedJobStore.get_many`."""
        return await self.database.run(partial(ended_queries.find_many, job_ids=job_ids))

    async def list(self, query: EndedQuery) -> EndedPage:
        """See `EndedJobStore.list`."""
        return await self.database.run(partial(ended_queries.page, query=query))

    async def counts(self) -> dict[tuple[str, int], int]:
        """See `EndedJobStore.counts`."""
        return await self.database.run(ended_queries.counts)

    async def dead_statistics(self, queue: str = "") -> Sequence[DeadGroup]:
        """See `EndedJobStore.dead_statistics`."""
        return await self.database.run(partial(ended_queries.dead_statistics, queue=queue))

    async def scan(self, scan: EndedScan) -> Sequence[EndedSpan]:
        """See `EndedJobStore.scan`."""
        return await self.database.run(partial(ended_scans.scan, scan=scan))

    async def count(self, scan: EndedScan) -> int:
        """See `EndedJobStore.count`."""
        return await self.database.run(partial(ended_scans.count, scan=scan))

    async def next_own_count(self, before: OwnCount | None) -> OwnCount | None:
        """See `EndedJobStore.next_own_count`."""
        return await self.database.run(partial(ended_scans.next_own_count, before=before))

    async def totals(self, queue: str, state: int) -> EndedTotals:
        """See `EndedJobStore.totals`."""
        return await self.database.run(partial(ended_scans.totals, queue=queue, state=state))

    async def close(self) -> None:
        """See `EndedJobStore.close`. SQLite checkpoints the WAL as it closes, with an fsync."""
        if self._opened is not None:
            database, self._opened = self._opened, None
            if self._beside is not None:
                self._beside.space.remove(database)
            await database.close()

    @property
    def database(self) -> Database:
        """Returns its file; raises before `open`."""
        if self._opened is None:
            raise RuntimeError("the ended store is not open")
        return self._opened


def _prepare(connection: sqlite3.Connection) -> None:
    if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0:
        bootstrap.create(connection, FORMAT.script, {})
    bootstrap.upgrade(connection, FORMAT)
    bootstrap.check_format(connection, FINISHED_FILE, FORMAT)


def _commit_with_fsync(connection: sqlite3.Connection) -> None:
    """A commit under FULL fsyncs the WAL, and with it all commits before (sqlite.org/wal.html)."""
    connection.execute("PRAGMA synchronous = FULL")
    try:
        transact(connection, lambda: ended_ops.note_sync(connection))
    finally:
        connection.execute("PRAGMA synchronous = NORMAL")


def _slices(ops: Sequence[EndedOp]) -> Iterator[Sequence[EndedOp]]:
    """Yields slices of bounded number and size, in order; a `RemoveQueue` is a slice of its own."""
    start, size = 0, 0
    for index, op in enumerate(ops):
        alone = isinstance(op, RemoveQueue)
        if index > start and (alone or index - start == _SLICE_OPS or size >= _SLICE_BYTES):
            yield ops[start:index]
            start, size = index, 0
        if alone:
            yield ops[index : index + 1]
            start = index + 1
        size += len(op.row.blob) if isinstance(op, _WITH_BLOB) else 0
    if start < len(ops):
        yield ops[start:]


def _bytes_of(ops: Sequence[EndedOp]) -> int:
    blobs = sum(len(op.row.blob) for op in ops if isinstance(op, _WITH_BLOB))
    return blobs + len(ops) * _ROW_BYTES
