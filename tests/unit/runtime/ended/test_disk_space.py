"""What makes room on a full disk, and when pushes are taken again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from jobline_server.runtime.ended.disk_space import SLICES_MAX, DiskSpace
from jobline_server.runtime.runtime import Runtime
from jobline_server.storage.space import NO_SPACE
from jobline_server.storage.store import DiskFull


class SmallDisk:
    """A `Space` that says what is asked of it. `slices` are what `shrink` returns or raises."""

    def __init__(self, slices: Sequence[int | DiskFull], *, reserve: bool = False) -> None:
        self.asked: list[str] = []
        self._slices = list(slices)
        self._reserve = reserve
        self.stands = False
        self.has_room = True

    def free_bytes(self) -> int | None:
        return 0

    def ballast_stands(self) -> bool:
        return self.stands

    def held_bytes(self) -> int:
        return 0

    async def give_up_ballast(self, *, last: bool) -> bool:
        self.asked.append("give up")
        given, self._reserve = self._reserve and last, False
        return given

    async def restore_ballast(self) -> bool:
        self.asked.append("restore")
        return self.has_room

    async def shrink(self) -> int:
        self.asked.append("shrink")
        found = self._slices.pop(0)
        if isinstance(found, DiskFull):
            raise found
        return found


Made = Callable[[SmallDisk], DiskSpace]


@pytest.fixture
def made(runtime: Runtime) -> Made:
    def make(disk: SmallDisk) -> DiskSpace:
        runtime.core.space = disk
        return DiskSpace(runtime.core)

    return make


async def test_nothing_is_done_while_the_reserve_stands(made: Made) -> None:
    disk = SmallDisk([])
    disk.stands = True
    assert not await made(disk).make_room()
    assert disk.asked == []


async def test_files_are_shrunk_before_the_reserve_is_restored(
    made: Made, runtime: Runtime
) -> None:
    disk = SmallDisk([7, 7, 0])
    runtime.core.commits.disk_full = True
    assert not await made(disk).make_room()
    assert disk.asked == ["shrink", "shrink", "shrink", "restore"]
    assert not runtime.core.commits.disk_full, "pushes are taken again"


async def test_pushes_are_refused_until_the_reserve_stands(made: Made, runtime: Runtime) -> None:
    disk = SmallDisk([0])
    disk.has_room = False
    assert await made(disk).make_room()
    assert runtime.core.commits.disk_full


async def test_shrinking_takes_all_of_the_reserve_and_then_gives_up(made: Made) -> None:
    """Trial B6: moving pages needs room in the write-ahead log."""
    disk = SmallDisk([DiskFull(), 5, DiskFull()], reserve=True)
    await made(disk).make_room()
    assert disk.asked == ["shrink", "give up", "shrink", "shrink", "give up", "restore"]


async def test_one_run_shrinks_a_bounded_number_of_slices(made: Made) -> None:
    disk = SmallDisk([1] * 10 * SLICES_MAX)
    await made(disk).make_room()
    assert disk.asked == ["shrink"] * SLICES_MAX + ["restore"]


async def test_store_without_space_is_never_full(runtime: Runtime) -> None:
    """A database elsewhere has no file system that the server could look after."""
    runtime.core.space = NO_SPACE
    runtime.core.commits.disk_full = True
    assert not await DiskSpace(runtime.core).make_room()
    assert (NO_SPACE.free_bytes(), await NO_SPACE.shrink()) == (None, 0)
    assert not await NO_SPACE.give_up_ballast(last=True)
