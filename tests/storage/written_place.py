"""A directory with a store that was written and closed, and whose files can be changed then."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from functools import partial
from pathlib import Path

from jobline_server.storage.ended_store import EndedQuery
from jobline_server.storage.sqlite.ended_store import SqliteEndedJobStore
from jobline_server.storage.sqlite.items import shard_row
from jobline_server.storage.sqlite.losses import Losses
from jobline_server.storage.sqlite.store import SqliteSettings, SqliteStore
from tests.storage.ended_reference import ids_of, put
from tests.storage.rows import Writer, blobs_of, checkpoint, job, opened, truncate_all

SMALL = SqliteSettings(ballast_bytes=0, low_space_bytes=0)
# The losses that were accepted, as they are reported.
ACCEPTED: list[str] = []
ACCEPTING = replace(SMALL, losses=Losses(accepted=True, report=ACCEPTED.append))
# Five commits of shard 0, the first two of which are in a checkpoint: the journal's tail is 3, 4,
# 5.
BLOBS = [b"one", b"two", b"three", b"four", b"five"]
TAIL = BLOBS[2:]


class Place:
    """A directory with a store that was written and closed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._stores: list[SqliteStore] = []

    def store(self, settings: SqliteSettings = SMALL) -> SqliteStore:
        self._stores.append(SqliteStore(self.directory, settings))
        return self._stores[-1]

    async def write(self, *, truncate: bool = True) -> None:
        store = self.store()
        writer = await opened(store)
        for blob in BLOBS:
            await store.commit([writer.row(blob)])
            if blob == BLOBS[1]:
                await checkpoint(store, writer, [job(1)])
        if truncate:
            await truncate_all(store)
        await store.close()

    async def end_jobs(self, *ids: int) -> list[int]:
        """Jobs that ended, in the finished file; a checkpoint cut the journal that told of them.
        Returns all that the file has then."""
        store = self.store()
        finished = SqliteEndedJobStore(self.directory, beside=store)
        writer = await opened(store)
        await finished.open()
        try:
            await finished.write([put(job_id) for job_id in ids])
            await finished.sync()
            await store.commit([writer.row(b"ended")])
            image = (await store.database.run(partial(shard_row, shard=0))).generation
            await store.finish_checkpoint(
                0, writer.epoch, image + 1, writer.offset, writer.chain, [], []
            )
            return ids_of(await finished.list(EndedQuery()))
        finally:
            await finished.close()
            await store.close()

    async def ended(self, settings: SqliteSettings = SMALL) -> list[int]:
        """Opens both files, and returns the jobs in the finished file."""
        store = self.store(settings)
        finished = SqliteEndedJobStore(self.directory, beside=store)
        try:
            await store.open(2)
            await finished.open()
            return ids_of(await finished.list(EndedQuery()))
        finally:
            await finished.close()
            await store.close()

    def forget_promise(self) -> None:
        """As if no promise had ever been made."""
        (self.directory / "promise").unlink()
        self.change("UPDATE belongs SET promised = 0")

    def change(self, statement: str) -> None:
        """Changes the database behind the store's back. In shard 0 a row's position is its
        offset."""
        connection = sqlite3.connect(self.directory / "jobline.db")
        connection.execute(statement)
        connection.commit()
        connection.close()

    def ask(self, statement: str) -> list[tuple[object, ...]]:
        connection = sqlite3.connect(self.directory / "jobline.db")
        found = connection.execute(statement).fetchall()
        connection.close()
        return found

    async def read(self, settings: SqliteSettings = SMALL) -> tuple[Writer, list[bytes]]:
        store = self.store(settings)
        writer = await opened(store)
        blobs = await blobs_of(store)
        return writer, blobs

    async def close(self) -> None:
        for store in self._stores:
            await store.close()
