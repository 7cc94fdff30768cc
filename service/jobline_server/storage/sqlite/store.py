"""`SqliteStore`: the `Store` interface over one directory. It has no rules of its own, it combines
the parts: which function runs on the database's thread, what is written to the watermark after it,
and what happens on a full disk."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from jobline_server.storage.sqlite import belonging, bootstrap, items, journal, loading
from jobline_server.storage.sqlite.bootstrap import DATABASE_FILE
from jobline_server.storage.sqlite.connection import Database, DatabaseSettings
from jobline_server.storage.sqlite.failures import in_transaction
from jobline_server.storage.sqlite.files import (
    DirectoryLock,
    free_bytes,
    keep_copy,
    make_directory,
    sync_directory,
)
from jobline_server.storage.sqlite.losses import Losses
from jobline_server.storage.sqlite.pages import SQLITE_PAGE_BYTES
from jobline_server.storage.sqlite.space import DirectorySpace
from jobline_server.storage.sqlite.watermark import WatermarkFile
from jobline_server.storage.store import (
    NO_CEILINGS,
    BadRow,
    CommitUnknown,
    DataLoss,
    DiskFull,
    ItemKey,
    ItemRow,
    JournalRow,
    ShardImage,
    StoreRefused,
)

T = TypeVar("T")

# A start with less free space than this frees the ballast first; it is restored afterwards.
START_BYTES = 1 << 20
# What a commit writes beside its blobs, about: the rest of the last page and the page of the shard
# row.
_ROW_BYTES = 2 * SQLITE_PAGE_BYTES

LOCK_FILE = "lock"
PROMISE_FILE = "promise"


@dataclass(frozen=True, slots=True)
class SqliteSettings:
    """`ballast_bytes`: the reserve that is freed on a full disk, so that acks go on.
    `low_space_bytes`: what must be free beside the ballast to restore it. `losses`: refused, or
    accepted for one start. `database`: how the file is opened."""

    ballast_bytes: int = 64 << 20
    low_space_bytes: int = 256 << 20
    losses: Losses = field(default_factory=Losses)
    database: DatabaseSettings = field(default_factory=DatabaseSettings)


class SqliteStore:
    """A store in a directory. `open` first."""

    def __init__(self, directory: Path, settings: SqliteSettings | None = None) -> None:
        self._directory = directory
        self._settings = settings or SqliteSettings()
        self.losses = self._settings.losses
        self._lock = DirectoryLock(directory / LOCK_FILE)
        self.space = DirectorySpace(
            directory,
            ballast_bytes=self._settings.ballast_bytes,
            low_space_bytes=self._settings.low_space_bytes,
        )
        self._ballast = self.space.ballast
        self._opened: Database | None = None
        self._watermarks: WatermarkFile | None = None
        self._ended_file: belonging.EndedFile | None = None
        # Of open shards: the id ceilings, which the watermark has beside the row.
        self._ceilings: dict[int, int] = {}

    async def open(self, shards: int) -> int:
        """See `Store.open`."""
        make_directory(self._directory)
        self._lock.take()
        try:
            return await self._open(shards)
        except BaseException:
            await self.close()
            raise

    async def _open(self, shards: int) -> int:
        file = self._directory / DATABASE_FILE
        self._ballast.find()
        while free_bytes(self._directory) < START_BYTES:
            # SQLite cannot open its files on a full disk.
            if not self._ballast.give_up(last=True):
                raise DiskFull("the disk is full; nothing was written")
        self._opened = await Database.open(file, self._settings.database)
        self.space.add(self._opened)
        sync_directory(self._directory)
        try:
            found = await self.database.run(partial(bootstrap.prepare, shards=shards))
            losses = self.losses
            await self.database.run(partial(bootstrap.check_structure, losses=losses))
            mark_file = self._directory / PROMISE_FILE
            missing = partial(belonging.check_watermark, file=mark_file, losses=losses)
            await self.database.run(missing)
            marks = self._watermarks = WatermarkFile(mark_file, found)
            compare = partial(bootstrap.compare_with_watermark, watermarks=marks, losses=losses)
            await self.database.run(compare)
            await self._write_anyway(belonging.note_watermark)
        except DataLoss as damage:
            raise StoreRefused(f"{DATABASE_FILE}: {damage}") from damage
        except StoreRefused:
            # Closing deletes the WAL, from which lost commits may still be recovered by hand.
            keep_copy(file.with_name(file.name + "-wal"), ".refused")
            raise
        self.space.stand()
        return found

    async def join(self, ended_file: belonging.EndedFile) -> None:
        """Takes finished.db, opened, for its own: from now on each checkpoint notes how far it was
        synced. Raises `StoreRefused` if it is not the one that the store had.
        """
        await belonging.join(self.database, ended_file, self.losses)
        self._ended_file = ended_file

    async def open_shard(self, shard: int, epoch_floor: int, id_block: int) -> ShardImage:
        """See `Store.open_shard`."""
        apart = 0
        if self.losses.accepted:
            cut = partial(bootstrap.cut_where_it_breaks, shard=shard, losses=self.losses)
            apart = await self._write_anyway(cut)
        row = await self._write_anyway(
            partial(bootstrap.take_shard, shard=shard, epoch_floor=epoch_floor, id_block=id_block)
        )
        self._ceilings[shard] = row.id_ceiling
        self._watermark.keep(shard, row.epoch, row.offset, row.chain, row.id_ceiling)
        self._watermark.sync()
        await self.drop_staged(shard)
        return ShardImage(row, first_free_id_sequence=row.id_ceiling - id_block, set_apart=apart)

    def items(self, shard: int) -> AsyncIterator[list[ItemRow | BadRow]]:
        """See `Store.items`."""
        return loading.items_of(self.database, shard)

    def journal(self, shard: int) -> AsyncIterator[list[JournalRow]]:
        """See `Store.journal`."""
        return loading.journal_of(self.database, shard)

    async def commit(
        self, rows: Sequence[JournalRow], id_ceilings: Mapping[int, int] = NO_CEILINGS
    ) -> None:
        """See `Store.commit`. One hop to the thread, and one statement there."""
        if not rows and not id_ceilings:
            return
        written = sum(len(row.blob) for row in rows) + _ROW_BYTES * len(rows)
        await self.database.write(partial(self._append, rows, id_ceilings), written)

    def _append(
        self,
        rows: Sequence[JournalRow],
        id_ceilings: Mapping[int, int],
        connection: sqlite3.Connection,
    ) -> None:
        """Commits on the thread, so that no other commit comes before the retry after a full disk,
        or before this one is in the watermark."""
        append = partial(journal.append, connection, rows, id_ceilings)
        self._with_ballast(connection, append, last=False)
        for shard, ceiling in id_ceilings.items():
            self._ceilings[shard] = max(ceiling, self._ceilings.get(shard, 0))
        for row in rows:
            ceiling = self._ceilings.get(row.shard, 0)
            self._watermark.keep(row.shard, row.epoch, row.offset, row.chain, ceiling)

    async def resolve(self, shard: int, epoch: int, offset: int, chain: int) -> bool:
        """See `Store.resolve`. After a failed fsync nobody knows what is on the disk: reads may be
        answered from memory that was never written.
        """
        raise CommitUnknown(f"nobody can say whether offset {offset} of shard {shard} is on disk")

    async def stage(
        self,
        shard: int,
        epoch: int,
        generation: int,
        rows: Sequence[ItemRow],
        removals: Sequence[ItemKey],
    ) -> None:
        """See `Store.stage`."""
        slice_ = partial(
            items.stage,
            shard=shard,
            epoch=epoch,
            generation=generation,
            rows=rows,
            removals=removals,
        )
        await self.database.transact(slice_, items.bytes_of(rows, removals))
        # As much work as the slice was, and caused by it: the caller rests by how long this takes.
        await self.database.wait_moved()

    async def finish_checkpoint(
        self,
        shard: int,
        epoch: int,
        generation: int,
        offset: int,
        chain: int,
        rows: Sequence[ItemRow],
        removals: Sequence[ItemKey],
    ) -> None:
        """See `Store.finish_checkpoint`."""
        syncs = (await self._ended_file.mark()).syncs if self._ended_file else None

        def finish(connection: sqlite3.Connection) -> None:
            if syncs is not None:
                belonging.note_ended(connection, syncs)
            items.stage(connection, shard, epoch, generation, rows, removals)
            items.finish(connection, shard, epoch, generation, offset, chain)

        size = items.bytes_of(rows, removals) + _ROW_BYTES
        # What it makes room for is the rest of the journal.
        await self._write_anyway(partial(in_transaction, work=finish), size)

    async def drop_staged(self, shard: int) -> None:
        """See `Store.drop_staged`."""
        row = await self.database.run(partial(items.shard_row, shard=shard))
        after: tuple[int, int] | None = items.BEFORE_ALL
        while after is not None:
            clean = partial(
                items.delete_leftovers, shard=row, after=after, limit_rows=loading.SLICE_ROWS
            )
            after = await self._write_anyway(partial(in_transaction, work=clean))

    async def _write_anyway(
        self, work: Callable[[sqlite3.Connection], T], wal_bytes: int = _ROW_BYTES
    ) -> T:
        """Runs a write that a start needs or that makes room: it may take all of the ballast."""

        def written(connection: sqlite3.Connection) -> T:
            return self._with_ballast(connection, lambda: work(connection), last=True)

        return await self.database.write(written, wal_bytes)

    def _with_ballast(self, raw: sqlite3.Connection, work: Callable[[], T], *, last: bool) -> T:
        """Runs a write, with as much of the ballast as it needs, out of which the WAL is emptied
        first."""
        while True:
            try:
                return work()
            except DiskFull:
                if not self._ballast.give_up(last=last):
                    raise
                self.database.empty_wal_here(raw)

    async def truncate(self, shard: int, limit_rows: int) -> int:
        """See `Store.truncate`."""

        def truncate(connection: sqlite3.Connection) -> int:
            row = items.shard_row(connection, shard)
            deleted, left = items.truncate(connection, row, limit_rows)
            if left or deleted >= limit_rows:
                return max(left, 1)
            _, left = journal.truncate(connection, row, limit_rows - deleted)
            return min(left, limit_rows)

        return await self._write_anyway(partial(in_transaction, work=truncate))

    async def close(self) -> None:
        """See `Store.close`."""
        if self._opened is not None:
            database, self._opened = self._opened, None
            self.space.remove(database)
            await database.close()
        if self._watermarks is not None:
            self._watermarks.close()
            self._watermarks = None
        self._lock.release()

    @property
    def database(self) -> Database:
        """Returns its file; raises before `open`."""
        if self._opened is None:
            raise RuntimeError("the store is not open")
        return self._opened

    @property
    def _watermark(self) -> WatermarkFile:
        if self._watermarks is None:
            raise RuntimeError("the store is not open")
        return self._watermarks
