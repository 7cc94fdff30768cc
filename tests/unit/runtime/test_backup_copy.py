"""Copies for backups: what is followed, and when one is given up."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jobline_server.runtime.backup_copy import COPIED_MAX, CopyMaker
from jobline_server.runtime.runtime import Runtime
from jobline_server.storage.copies import CopyFailed

TOTAL = 1 << 20


class Copying:
    """Stands for a store and the copy of it, which has pieces of a quarter. `grows`: the store does
    by as much during each second piece as was copied with the one before.
    """

    total_bytes = TOTAL

    def __init__(self, *, free: int = 1 << 40, grows: bool = False) -> None:
        self.free, self.grows = free, grows
        self.left, self.steps = TOTAL, 0
        self.done: list[str] = []

    async def identity(self) -> int:
        """Returns any number."""
        return 7

    def free_bytes(self) -> int:
        """Returns the room that there is."""
        return self.free

    async def begin(self, _folder: Path) -> Copying:
        """Returns itself."""
        return self

    async def step(self) -> int:
        """Copies a piece, while the store grows."""
        self.steps += 1
        self.left += TOTAL // 4 if self.grows and self.steps % 2 == 0 else -TOTAL // 4
        return self.left

    def is_close(self) -> bool:
        """Returns whether little is left."""
        return self.left <= 0

    async def finish(self) -> None:
        """Notes it."""
        self.done.append("finished")

    async def abandon(self) -> None:
        """Notes it."""
        self.done.append("abandoned")

    async def make_durable(self) -> None:
        """Notes it."""
        self.done.append("durable")


def maker(runtime: Runtime, copying: Copying, noted: list[tuple[int, int]]) -> CopyMaker:
    return CopyMaker(runtime.core, copying, 0, lambda *one: noted.append(one))


async def test_a_copy_has_the_time_at_which_it_was_finished(
    runtime: Runtime, tmp_path: Path
) -> None:
    """And how far it is is told on the way."""
    copying, noted = Copying(), list[tuple[int, int]]()
    at_ms = await maker(runtime, copying, noted).make(tmp_path)
    assert at_ms == runtime.core.wall_ms()
    assert noted == [(TOTAL * n // 4, TOTAL) for n in (1, 2, 3, 4)]
    assert copying.done == ["finished", "durable"]


async def test_a_disk_without_room_for_it_is_not_filled(runtime: Runtime, tmp_path: Path) -> None:
    copying, noted = Copying(free=TOTAL - 1), list[tuple[int, int]]()
    with pytest.raises(CopyFailed, match="too little room for a copy: 1 bytes more"):
        await maker(runtime, copying, noted).make(tmp_path)
    assert (copying.done, noted) == (["abandoned"], [])


async def test_a_store_that_grows_faster_than_it_is_copied_is_given_up(
    runtime: Runtime, tmp_path: Path
) -> None:
    """It would be copied for ever, and fill the disk."""
    copying, noted = Copying(grows=True), list[tuple[int, int]]()
    async with asyncio.timeout(20):
        with pytest.raises(CopyFailed, match="grows faster"):
            await maker(runtime, copying, noted).make(tmp_path)
    assert copying.done[-1] == "abandoned"
    assert len(noted) == 2 * 4 * COPIED_MAX + 1
