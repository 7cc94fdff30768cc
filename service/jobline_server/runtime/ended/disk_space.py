"""Room on the disk: whether pushes are taken, and what is done while they are not.

A disk is full from the first write that finds no room, or takes the reserve, until the reserve can
be set up again. Meanwhile what is free within the files goes back to the file system: retention and
deletes make room in them.
"""

from __future__ import annotations

from jobline_server.runtime.core import Core
from jobline_server.storage.ended_store import EndedJobStore
from jobline_server.storage.store import DiskFull

# Slices that one look gives back at most: it comes again in a second.
SLICES_MAX = 64


class Room:
    """Looks after the reserve of a store."""

    def __init__(self, core: Core, ended_store: EndedJobStore) -> None:
        self._core = core
        self._ended_store = ended_store

    async def look(self) -> bool:
        """Makes room if the disk is full; returns whether it still is."""
        commits, store = self._core.commits, self._core.store
        if commits.disk_full or not store.ballast_stands():
            await self._give_back()
            commits.disk_full = not await store.restore_ballast()
        return commits.disk_full

    async def _give_back(self) -> None:
        for part in (self._ended_store, self._core.store):
            for _ in range(SLICES_MAX):
                try:
                    given = await part.shrink()
                except DiskFull:
                    # What makes room may have all of the reserve.
                    if not await self._core.store.give_up_ballast(last=True):
                        return
                    continue
                if not given:
                    break
