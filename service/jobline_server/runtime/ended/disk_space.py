"""Room on the disk: decides when pushes are taken again, and makes room while they are not.

A disk is full from the first write that finds no room, or takes the reserve, until the reserve can
be set up again. Meanwhile the free pages of the files go back to the file system: retention and
deletes free pages.
"""

from __future__ import annotations

from jobline_server.runtime.core import Core
from jobline_server.storage.store import DiskFull

# Slices of each file that one call gives back; the next call comes a second later.
SLICES_MAX = 64


class DiskSpace:
    """Restores the reserve of a store."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def make_room(self) -> bool:
        """Makes room if the disk is full; returns whether it still is."""
        commits, space = self._core.commits, self._core.space
        if commits.disk_full or not space.ballast_stands():
            await self._shrink_files()
            commits.disk_full = not await space.restore_ballast()
        return commits.disk_full

    async def _shrink_files(self) -> None:
        space = self._core.space
        for _ in range(SLICES_MAX):
            try:
                if not await space.shrink():
                    return
            except DiskFull:
                # Writes that make room may take all of the reserve.
                if not await space.give_up_ballast(last=True):
                    return
