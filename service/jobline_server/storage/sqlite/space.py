"""`DirectorySpace`: the `Space` interface over the files of a directory."""

from __future__ import annotations

from pathlib import Path

from jobline_server.storage.sqlite.ballast import Ballast
from jobline_server.storage.sqlite.connection import SHRUNK_PAGES, Database
from jobline_server.storage.sqlite.files import free_bytes
from jobline_server.storage.sqlite.pages import SQLITE_PAGE_BYTES
from jobline_server.storage.store import DiskFull


class DirectorySpace:
    """The ballast of a directory, and its databases. The store that made it adds its own database
    first: all work on the ballast is done on that thread.
    """

    def __init__(self, directory: Path, *, ballast_bytes: int, low_space_bytes: int) -> None:
        self.ballast = Ballast(directory / "ballast", ballast_bytes)
        self._directory = directory
        self._low_space_bytes = low_space_bytes
        self._databases: list[Database] = []

    def add(self, database: Database) -> None:
        """Adds a database that was opened, to be shrunk."""
        self._databases.append(database)
        database.on_full = self.ballast.withhold

    def remove(self, database: Database) -> None:
        """Removes a database that is about to be closed; it need not have been added."""
        if database in self._databases:
            self._databases.remove(database)

    def stand(self) -> bool:
        """Sets up the ballast if there is room for it and more; returns whether it stands. Call it
        on the store's thread.
        """
        return self.ballast.stand(self._low_space_bytes)

    def free_bytes(self) -> int:
        """See `Space.free_bytes`."""
        return free_bytes(self._directory)

    def ballast_stands(self) -> bool:
        """See `Space.ballast_stands`."""
        return self.ballast.standing

    def held_bytes(self) -> int:
        """See `Space.held_bytes`."""
        return self.ballast.held_bytes

    async def give_up_ballast(self, *, last: bool) -> bool:
        """See `Space.give_up_ballast`."""
        given = await self._store.run(lambda _: self.ballast.give_up(last=last))
        if given:
            await self._empty_wals()
        return given

    async def restore_ballast(self) -> bool:
        """See `Space.restore_ballast`. Allocating may take a while."""
        return await self._store.run(lambda _: self.stand())

    async def shrink(self) -> int:
        """See `Space.shrink`. One file that finds no room does not keep others from making some."""
        await self._empty_wals()
        pages = 0
        full: DiskFull | None = None
        for database in reversed(self._databases[:]):
            try:
                pages += await database.shrink(SHRUNK_PAGES)
            except DiskFull as error:
                full = error
        if full is not None and not pages:
            raise full
        return pages * SQLITE_PAGE_BYTES

    async def _empty_wals(self) -> None:
        """Turns what room there is into more, before anything else takes it."""
        for database in self._databases[:]:
            await database.empty_wal()

    @property
    def _store(self) -> Database:
        if not self._databases:
            raise RuntimeError("the store is not open")
        return self._databases[0]
