"""Which writes take the reserve of a full disk."""

from __future__ import annotations

import pytest

from jobline_server.runtime.ended.reserve import SPARE_BYTES, finds_room, with_reserve
from jobline_server.storage.space import NoSpace
from jobline_server.storage.store import DiskFull
from tests.storage.memory_ended_store import MemoryEndedStore

STEP = 1_000


class SmallDisk(NoSpace):
    """A disk with a reserve that is given up in steps."""

    def __init__(self, free: int, held: int) -> None:
        self.free, self.held = free, held

    def free_bytes(self) -> int:
        return self.free

    def held_bytes(self) -> int:
        return self.held

    async def give_up_ballast(self, *, last: bool) -> bool:
        assert last
        step = min(STEP, self.held)
        self.held, self.free = self.held - step, self.free + step
        return step > 0


class File(MemoryEndedStore):
    """A store whose file has so much room."""

    def __init__(self, freed: int) -> None:
        super().__init__()
        self.freed = freed

    async def growth(self, size_bytes: int) -> int:
        return max(size_bytes - self.freed, 0)


@pytest.mark.parametrize(
    ("free", "held", "freed", "fits", "left"),
    [
        (2_500, 9_000, 0, True, 9_000),
        (2_499, 9_000, 0, False, 9_000),
        (1_500, 9_000, 999, False, 9_000),
        (1_500, 0, 1_000, True, 0),
        (0, 9_000, 1_000, True, 7_000),
        (0, 1_400, 1_000, False, 1_400),
    ],
)
async def test_rows_take_the_reserve_only_where_they_give_it_back(
    free: int, held: int, freed: int, fits: bool, left: int
) -> None:
    """A row of 1,000 bytes: half as much again in the log, and what the file grows by."""
    disk = SmallDisk(free + SPARE_BYTES, held) if free else SmallDisk(SPARE_BYTES, held)
    assert await finds_room(disk, File(freed), 1_000) is fits
    assert disk.held == left


async def test_where_the_room_is_not_known_a_write_is_tried() -> None:
    assert await finds_room(NoSpace(), File(0), 1_000)


async def test_a_write_that_makes_room_takes_as_much_of_the_reserve_as_it_needs() -> None:
    disk = SmallDisk(0, 3 * STEP)

    async def write() -> None:
        if disk.free < needed:
            raise DiskFull

    needed = 2 * STEP
    await with_reserve(disk, write)
    assert disk.held == STEP
    needed = 4 * STEP
    with pytest.raises(DiskFull):
        await with_reserve(disk, write)
    assert disk.held == 0
