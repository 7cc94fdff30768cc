"""Copies the store for a backup, between commits: steps 1 and 2 of `backups`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from jobline_server.runtime.core import Core
from jobline_server.storage.copies import CopyFailed, StoreCopies, StoreCopy

# So much is copied a second at most, so that the disk is there for commits.
BYTES_A_SECOND = 64 << 20
# After each piece the store belongs to commits for so many times as long as it took.
REST = 4.0
# So much is made durable at once: the fsyncs of commits wait for it, a few milliseconds.
DURABLE_BYTES = 2 << 20
# A store that grows faster than it is copied is given up after so many times its size.
COPIED_MAX = 3


class CopyMaker:
    """Makes copies. `spare_bytes` stay free on the disk of the store; `note` is told how many bytes
    of how many are copied.
    """

    def __init__(
        self, core: Core, copies: StoreCopies, spare_bytes: int, note: Callable[[int, int], None]
    ) -> None:
        self._core = core
        self._copies = copies
        self._spare_bytes = spare_bytes
        self._note = note

    async def make(self, folder: Path) -> int:
        """Copies both files into a folder; returns the wall time of the state that they have.
        Raises `CopyFailed`.
        """
        copy = await self._copies.begin(folder)
        try:
            self._check_room(copy.total_bytes)
            await self._follow(copy)
            async with self._core.commits.exclusive:
                await copy.finish()
                at_ms = self._now_ms()
            await copy.make_durable()
        except BaseException:
            await copy.abandon()
            raise
        return at_ms

    async def _follow(self, copy: StoreCopy) -> None:
        copied = durable = 0
        left = copy.total_bytes
        while not copy.is_close():
            began = time.monotonic()
            async with self._core.commits.exclusive:
                before, left = left, await copy.step()
            took = time.monotonic() - began
            moved = max(before - left, 0)
            copied += moved
            self._note(max(copy.total_bytes - left, 0), copy.total_bytes)
            if copied > COPIED_MAX * copy.total_bytes:
                raise CopyFailed("the store grows faster than it is copied")
            if copied - durable >= DURABLE_BYTES:
                durable = copied
                self._check_room(left)
                await copy.make_durable()
            spent = time.monotonic() - began
            await asyncio.sleep(max(took * REST, moved / BYTES_A_SECOND) - spent)

    def _check_room(self, needed: int) -> None:
        spare = self._copies.free_bytes() - needed
        if spare < self._spare_bytes:
            missing = self._spare_bytes - spare
            raise CopyFailed(
                f"the disk of the store has too little room for a copy: {missing:,} bytes more are "
                "needed"
            )

    def _now_ms(self) -> int:
        return self._core.clock.now().wall_ms
