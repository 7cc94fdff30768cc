"""A copy of a database in use: it is the database as it was at one moment, whatever went on."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from jobline_server.storage.copies import CopyFailed
from jobline_server.storage.sqlite.connection import Database, DatabaseSettings
from jobline_server.storage.sqlite.live_copy import STEP_PAGES

ROWS = 3_000
BLOB_BYTES = 2_000


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """A database of some megabytes, with a WAL that is moved often."""
    settings = DatabaseSettings(synchronous="OFF", wal_bytes=1 << 18, cache_bytes=1 << 18)
    opened = await Database.open(tmp_path / "one.db", settings)

    def fill(raw: sqlite3.Connection) -> None:
        raw.execute("CREATE TABLE kept (id INTEGER PRIMARY KEY, turn INTEGER, blob BLOB)")
        rows = ((number, 0, bytes(BLOB_BYTES)) for number in range(ROWS))
        raw.executemany("INSERT INTO kept VALUES (?, ?, ?)", rows)

    await opened.transact(fill, 1 << 20)
    yield opened
    await opened.close()


def contents(raw: sqlite3.Connection) -> list[tuple[int, int, int]]:
    """Returns what is in the table, blobs by their length."""
    return raw.execute("SELECT id, turn, length(blob) FROM kept ORDER BY id").fetchall()


def contents_of(file: Path) -> list[tuple[int, int, int]]:
    """Returns what is in a copy, after a look at all its pages."""
    with closing(sqlite3.connect(f"{file.as_uri()}?immutable=1", uri=True)) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return contents(raw)


async def change(database: Database, chance: random.Random, turn: int) -> None:
    """Commits, rolls back or gives pages back, anywhere in the file."""
    first = chance.randrange(ROWS * 2)

    def write(raw: sqlite3.Connection) -> None:
        count = chance.randrange(1, 200)
        ids = [(turn, chance.randbytes(chance.randrange(4_000)), first + n) for n in range(count)]
        statement = "INSERT OR REPLACE INTO kept (turn, blob, id) VALUES (?, ?, ?)"
        raw.executemany(statement, ids)

    def remove(raw: sqlite3.Connection) -> None:
        raw.execute("DELETE FROM kept WHERE id BETWEEN ? AND ?", (first, first + 300))

    def fail(raw: sqlite3.Connection) -> None:
        write(raw)
        raise ValueError("on purpose")

    kind = chance.randrange(10)
    if kind == 0:
        with pytest.raises(ValueError, match="on purpose"):
            await database.transact(fail, 1 << 16)
    elif kind == 1:
        await database.shrink(1 << 10)
    else:
        await database.transact(remove if kind < 4 else write, 1 << 16)


@pytest.mark.parametrize("seed", range(8))
async def test_copy_is_the_database_at_its_last_step(
    database: Database, tmp_path: Path, seed: int
) -> None:
    """Given commits, rollbacks and freed pages between all steps; then the copy is what was
    committed before the last one, to the row."""
    chance = random.Random(seed)
    copy = database.begin_copy(tmp_path / "copy.db")
    turn, left = 0, STEP_PAGES + 1
    while left > STEP_PAGES or (left > 0 and turn < 40):
        if left > STEP_PAGES:
            left = await copy.step()
        if left:  # 0 if pages were given back meanwhile, so that these were the last ones
            turn += 1
            await change(database, chance, turn)
    while left:
        left = await copy.step()
    wanted = await database.run(contents)
    assert contents_of(tmp_path / "copy.db") == wanted
    await change(database, chance, turn + 1)
    assert contents_of(tmp_path / "copy.db") == wanted


async def test_commits_run_while_no_step_is_asked_for(database: Database, tmp_path: Path) -> None:
    """Given a copy whose next step nobody asks for; then the database serves as ever."""
    copy = database.begin_copy(tmp_path / "copy.db")
    assert await copy.step() > 0
    for turn in range(100):
        await change(database, random.Random(turn), turn)
    await copy.abandon()
    await copy.abandon()
    await change(database, random.Random(1), 1)
    again = database.begin_copy(tmp_path / "again.db")
    while await again.step():
        pass
    assert contents_of(tmp_path / "again.db") == await database.run(contents)


async def test_calls_at_the_end_of_a_copy_keep_their_order(
    database: Database, tmp_path: Path
) -> None:
    """Given calls before, at and after the moment at which a copy ends; then they run in order."""
    ran: list[int] = []

    def call(number: int) -> asyncio.Task[None]:
        return asyncio.create_task(database.run(lambda _: ran.append(number)))

    calls = [call(number) for number in range(50)]
    copy = database.begin_copy(tmp_path / "copy.db")
    number = 50
    left = 1
    while left:
        step = asyncio.create_task(copy.step())
        while not step.done():
            calls.append(call(number))
            number += 1
            await asyncio.sleep(0)
        left = await step
    await asyncio.gather(*calls)
    assert ran == list(range(number))


async def test_copy_that_cannot_be_written_leaves_the_database_alone(
    database: Database, tmp_path: Path
) -> None:
    """Given no directory for the copy; then it fails, and commits go on."""
    copy = database.begin_copy(tmp_path / "nowhere" / "copy.db")
    with pytest.raises(CopyFailed, match="copy"):
        await copy.step()
    await change(database, random.Random(1), 1)
    await copy.abandon()


async def test_closing_ends_a_copy(tmp_path: Path) -> None:
    """Given a copy under way; when the database is closed; then its step fails."""
    opened = await Database.open(tmp_path / "one.db", DatabaseSettings())
    await opened.transact(lambda raw: raw.execute("CREATE TABLE kept (id)"), 0)
    filled = await opened.transact(
        lambda raw: raw.execute("INSERT INTO kept VALUES (zeroblob(3000000))"), 0
    )
    assert filled is not None
    copy = opened.begin_copy(tmp_path / "copy.db")
    await copy.step()
    await opened.close()
    assert not (tmp_path / "one.db-wal").exists()


async def test_cancelled_step_can_be_given_up(database: Database, tmp_path: Path) -> None:
    """Given a step whose caller went away; then the copy is given up without a trace."""
    copy = database.begin_copy(tmp_path / "copy.db")
    step = asyncio.create_task(copy.step())
    await asyncio.sleep(0)
    step.cancel()
    await asyncio.wait([step])
    await copy.abandon()
    await change(database, random.Random(2), 2)
