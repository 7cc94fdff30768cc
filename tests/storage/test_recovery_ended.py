"""Recovery of what belongs together: the numbered cases of the finished file, on files that are
really so. The others stand in test_recovery_cases.py.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from jobline_server.storage.sqlite.ended_store import FINISHED_FILE
from jobline_server.storage.store import StoreRefused
from tests.storage.written_place import ACCEPTED, ACCEPTING, Place


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    made = Place(tmp_path)
    yield made
    await made.close()


async def check_finished_refused_then_accepted(place: Place, case: int, kept: list[int]) -> None:
    """As above, of the finished file: what is good of it is kept."""
    for _ in range(2):
        with pytest.raises(StoreRefused, match=f"recovery case {case}, ") as refusal:
            await place.ended()
        assert "--accept-loss" in str(refusal.value), "the way out is told"
    ACCEPTED.clear()
    assert await place.ended(ACCEPTING) == kept
    assert f"recovery case {case}, " in "".join(ACCEPTED), "nothing is given up in silence"
    assert await place.ended() == kept, "from now on it belongs to the store"


async def test_case_18_finished_file_that_was_deleted_is_refused(place: Place) -> None:
    """Trial E8: it was made anew in silence, and jobs that ended were NOT_FOUND."""
    assert await place.end_jobs(1, 2) == [1, 2]
    (place.directory / FINISHED_FILE).unlink()
    await check_finished_refused_then_accepted(place, 18, [])


async def test_case_18_finished_file_that_was_emptied_is_refused(place: Place) -> None:
    """Trial E8: SQLite takes a file of no bytes for a new database."""
    await place.end_jobs(1, 2)
    (place.directory / FINISHED_FILE).write_bytes(b"")
    await check_finished_refused_then_accepted(place, 18, [])


async def test_case_19_older_finished_file_is_refused(place: Place) -> None:
    """Trial E8: a copy from before the last checkpoint, whose journal is cut."""
    await place.end_jobs(1)
    older = (place.directory / FINISHED_FILE).read_bytes()
    await place.end_jobs(2)
    (place.directory / FINISHED_FILE).write_bytes(older)
    await check_finished_refused_then_accepted(place, 19, [1])


async def test_case_20_finished_file_of_another_store_is_refused(
    place: Place, tmp_path: Path
) -> None:
    """Trial E8: its ids are those of other jobs."""
    await place.end_jobs(1)
    (tmp_path / "other").mkdir()
    other = Place(tmp_path / "other")
    await other.end_jobs(7)
    (other.directory / FINISHED_FILE).replace(place.directory / FINISHED_FILE)
    await check_finished_refused_then_accepted(place, 20, [7])


async def test_case_20_finished_file_beside_a_new_store_is_refused(place: Place) -> None:
    """Trial E8: somebody deleted jobline.db alone."""
    await place.end_jobs(1)
    (place.directory / "jobline.db").unlink()
    (place.directory / "promise").unlink()
    await check_finished_refused_then_accepted(place, 20, [1])


@pytest.mark.parametrize("share", [0.3, 0.9])
async def test_case_21_finished_file_that_was_cut_is_refused(place: Place, share: float) -> None:
    """Trial E8: accepted, it is kept for people to look at."""
    await place.end_jobs(*range(1, 300))
    file = place.directory / FINISHED_FILE
    os.truncate(file, int(file.stat().st_size * share))
    await check_finished_refused_then_accepted(place, 21, [])
    assert (place.directory / f"{FINISHED_FILE}.lost").exists()


async def test_case_21_finished_file_that_is_no_database_is_refused(place: Place) -> None:
    await place.end_jobs(1)
    (place.directory / FINISHED_FILE).write_bytes(b"no database" * 1_000)
    await check_finished_refused_then_accepted(place, 21, [])


async def test_store_of_format_1_is_brought_to_this_one(place: Place) -> None:
    """Its files take each other for their own, whatever they are."""
    folder = Path(__file__).parent / "format_1"
    for name, script in (("jobline.db", "schema.sql"), (FINISHED_FILE, "finished_schema.sql")):
        with closing(sqlite3.connect(place.directory / name)) as connection:
            connection.executescript((folder / script).read_text().replace("{shards}", "2"))
    assert await place.end_jobs(1) == [1]
    (place.directory / FINISHED_FILE).unlink()
    await check_finished_refused_then_accepted(place, 18, [])
