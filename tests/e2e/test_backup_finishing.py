"""The last step of a backup: a manifest is written only where all its files are."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobline import AsyncClient
from jobline_server.offline.backups.choosing import whole_ones
from jobline_server.offline.backups.finishing import FILES, NotWhole, Wanted, finish
from jobline_server.offline.backups.places import DirectoryPlace
from jobline_server.testing import running_server
from tests.backing_up import Silent

STORE = "0123456789abcdef"
WANTED = Wanted(f"20260101T000000.000Z-{STORE}", 1, "0.1.0", STORE, 0)


class Losing(DirectoryPlace):
    """A directory of which everything is removed as its last file is sent."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.directory = directory

    def write(self, folder: str, name: str, pieces: Iterator[bytes]) -> None:
        """Removes what is there first, if this is the last file."""
        if name == FILES[-1]:
            shutil.rmtree(self.directory)
        super().write(folder, name, pieces)


@pytest.fixture
async def copy(tmp_path: Path) -> Path:
    """The files of a server that was stopped."""
    async with (
        running_server(tmp_path / "data") as server,
        AsyncClient(server.address) as client,
    ):
        await client.push("mail", {"n": 1})
    return tmp_path / "data"


async def test_a_destination_that_is_removed_while_files_are_sent_has_no_backup(
    copy: Path, tmp_path: Path
) -> None:
    """The folder is made again for each file, so the manifest named files that were gone, and the
    backup counted as whole: a restore found it out.
    """
    place = Losing(tmp_path / "to")
    with pytest.raises(NotWhole, match=r"finished\.db is not at its destination any more"):
        await asyncio.to_thread(finish, copy, WANTED, place, Silent())
    assert whole_ones(place) == []


async def test_a_file_that_is_cut_before_the_end_makes_no_backup(
    copy: Path, tmp_path: Path
) -> None:
    """Each was compared right after it was sent."""
    place = DirectoryPlace(tmp_path / "to")
    write = place.write

    def cut(folder: str, name: str, pieces: Iterator[bytes]) -> None:
        write(folder, name, pieces)
        if name == FILES[-1]:
            (tmp_path / "to" / folder / FILES[0]).write_bytes(b"")

    place.write = cut  # type: ignore[method-assign]  # a fault of the disk
    with pytest.raises(NotWhole, match=r"finished\.db is not"):
        await asyncio.to_thread(finish, copy, WANTED, place, Silent())


async def test_a_place_that_keeps_what_it_is_sent_has_one(copy: Path, tmp_path: Path) -> None:
    """Else the others could not fail."""
    place = DirectoryPlace(tmp_path / "to")
    made = await asyncio.to_thread(finish, copy, WANTED, place, Silent())
    assert whole_ones(place) == [made]
