"""Which backup is the newest: the one furthest in the journal, whatever time its name says."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

import pytest

from jobline_server.engine import limits
from jobline_server.offline.backups import promises
from jobline_server.offline.backups.choosing import READERS, delete_older, latest, whole_ones
from jobline_server.offline.backups.finishing import FILES
from jobline_server.offline.backups.manifest import (
    MANIFEST_FILE,
    BackupFile,
    BackupShard,
    Manifest,
    encode,
)
from jobline_server.offline.backups.places import DirectoryPlace
from jobline_server.offline.backups.restoring import find_backup

STORE = "0123456789abcdef"
OTHER = "fedcba9876543210"
FILE = BackupFile(bytes=1, sha256="00")

Position = tuple[int, int]


def backup(place: DirectoryPlace, day: str, *shards: Position, store: str = STORE) -> Manifest:
    """Puts a backup whose name says a day; its shards are at these epochs and offsets."""
    made = Manifest(
        name=f"{day}T000000.000Z-{store}",
        at_ms=0,
        server_version="0.1.0",
        store=store,
        shards=tuple(BackupShard(n, epoch, offset) for n, (epoch, offset) in enumerate(shards)),
        files=dict.fromkeys(FILES, FILE),
    )
    for name in FILES:
        place.write(made.name, name, iter([b"x"]))
    place.put(made.name, MANIFEST_FILE, encode(made))
    return made


def days(found: list[Manifest]) -> list[str]:
    return [one.name[:8] for one in found]


@pytest.fixture
def place(tmp_path: Path) -> DirectoryPlace:
    return DirectoryPlace(tmp_path / "to")


def test_backups_are_in_the_order_of_the_journal(place: DirectoryPlace) -> None:
    """A clock that was ahead gave its backups later names; a start raises the epoch, and a restored
    store goes on at an earlier offset with a later epoch."""
    backup(place, "20260101", (5, 100), (5, 7))
    backup(place, "20990101", (5, 120), (5, 7))
    backup(place, "20260103", (5, 120), (5, 9))
    backup(place, "20260104", (6, 90), (6, 3))
    assert days(whole_ones(place)) == ["20260104", "20260103", "20990101", "20260101"]


def test_the_name_decides_where_nothing_was_committed_between(place: DirectoryPlace) -> None:
    backup(place, "20260102", (5, 100))
    backup(place, "20260101", (5, 100))
    assert days(whole_ones(place)) == ["20260102", "20260101"]


def test_a_restore_takes_the_furthest_and_names_those_with_a_later_time(
    place: DirectoryPlace, tmp_path: Path
) -> None:
    ahead = backup(place, "20990101", (5, 120))
    wanted = backup(place, "20260103", (5, 130))
    backup(place, "20260102", (5, 110))
    found = find_backup(str(tmp_path / "to"))
    assert found.manifest == wanted
    assert (found.count, found.later_named) == (3, (ahead.name,))
    named = find_backup(str(tmp_path / "to" / ahead.name))
    assert (named.manifest, named.count, named.later_named) == (ahead, 1, ())


def test_the_furthest_stays_whatever_its_name_says(place: DirectoryPlace) -> None:
    """The clock was ahead, and is right again: what it made meanwhile is older than the last one,
    and goes. Then it is far behind: the last one stays, and so do those just before it."""
    for day, offset in (("20260101", 100), ("20990101", 110), ("20990102", 120)):
        backup(place, day, (5, offset))
    right = backup(place, "20260103", (5, 130))
    gone = delete_older(place, right, 2)
    assert [name[:8] for name in gone] == ["20990101", "20260101"]
    behind = backup(place, "19700101", (6, 140))
    delete_older(place, behind, 2)
    assert days(whole_ones(place)) == ["19700101", "20260103"]


def test_what_is_further_than_the_last_one_stays_and_takes_no_place(place: DirectoryPlace) -> None:
    """It is of a copy of the store that went on beside it: nobody can tell which one is wanted."""
    backup(place, "20260102", (9, 500))
    backup(place, "20260101", (5, 100))
    newest = backup(place, "20260103", (6, 90))
    assert delete_older(place, newest, 2) == []
    assert [name[:8] for name in delete_older(place, newest, 1)] == ["20260101"]


def test_stores_are_not_compared(place: DirectoryPlace, tmp_path: Path) -> None:
    """An offset of one says nothing of another's."""
    mine = backup(place, "20260101", (5, 100))
    backup(place, "20250101", (5, 50))
    backup(place, "20260102", (9, 500), store=OTHER)
    assert delete_older(place, mine, 1) == [f"20250101T000000.000Z-{STORE}"]
    assert days(whole_ones(place, STORE)) == ["20260101"]


class CountingPlace(DirectoryPlace):
    """Notes which folders are read."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.read_from: list[str] = []

    def read(self, folder: str, name: str) -> AbstractContextManager[IO[bytes]]:
        """Opens a file."""
        self.read_from.append(folder)
        return super().read(folder, name)


def test_the_latest_is_found_without_reading_those_before(tmp_path: Path) -> None:
    """A server that waits a minute for the answer of a slow object store with 15,000 backups never
    had one, and made no backup any more. Some of the last ones were cut off."""
    place = CountingPlace(tmp_path / "to")
    for year in range(1900, 2000):
        backup(place, f"{year}0101", (5, year))
    for day in range(1, READERS + 4):
        place.write(f"200001{day:02}T000000.000Z-{STORE}", "jobline.db", iter([b"x"]))
    backup(place, "20010101", (5, 9_000), store=OTHER)
    found = latest(place, STORE, f"20260101T000000.000Z-{STORE}")
    assert found is not None
    assert found.name[:8] == "19990101"
    assert len(place.read_from) == 2 * READERS
    assert not [name for name in place.read_from if name.endswith(OTHER)]


def test_the_latest_is_none_of_the_future_unless_there_are_no_others(place: DirectoryPlace) -> None:
    """They are of a clock that was ahead, and would make each start make a backup for years."""
    now_name = f"20260103T120000.000Z-{STORE}"
    assert latest(place, STORE, now_name) is None
    for day in ("20990101", "20990102"):
        backup(place, day, (5, 120))
    found = [latest(place, STORE, now_name)]
    for day in ("20260102", "20260103"):
        backup(place, day, (5, 130))
    found.append(latest(place, STORE, now_name))
    assert [one.name[:8] for one in found if one] == ["20990102", "20260103"]


@pytest.mark.parametrize(
    ("ahead_ms", "certain"), [(-3_600_000, True), (0, True), (5_000, True), (3_600_000, False)]
)
def test_a_backup_of_the_future_says_nothing_of_how_many_ids_were_given_out_since(
    tmp_path: Path, ahead_ms: int, certain: bool
) -> None:
    """A clock that was ahead made it, so the time since is unknown: as many ids are skipped as may
    be. Clocks of two machines differ by seconds at any time."""
    file = tmp_path / "jobline.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE shard (epoch INTEGER, id_ceiling INTEGER)")
        connection.execute("INSERT INTO shard VALUES (1, 0)")
    connection.close()
    now_ms = limits.EPOCH_ZERO_MS + 1_000_000_000
    assert promises.raise_ids(tmp_path, now_ms + ahead_ms, now_ms) is certain
    with sqlite3.connect(file) as connection:
        (ceiling,) = connection.execute("SELECT id_ceiling FROM shard").fetchone()
    connection.close()
    share = (1 << limits.SEQUENCE_BITS) // promises.SHARE_MAX
    assert (ceiling == share) is not certain
