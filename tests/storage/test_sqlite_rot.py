"""Files of another format, and files that rotted: refused, or set apart while their neighbours go
on."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from jobline_server.storage.sqlite import statements
from jobline_server.storage.sqlite.losses import Losses
from jobline_server.storage.store import BadRow, DataLoss, ItemKind, ItemRow, StoreRefused
from tests.storage.rows import bad_of, blobs_of, checkpoint, items_of, job, opened
from tests.storage.sqlite_stores import SMALL, Make


def change(directory: Path, *statements: str) -> None:
    for statement in statements:  # a connection each, so that a changed schema is read anew
        connection = sqlite3.connect(directory / "jobline.db")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(statement)
        connection.commit()
        connection.close()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("PRAGMA user_version = 5", "format 5; this version reads format 4"),
        ("PRAGMA user_version = 1", "format 1 cannot be brought on"),
        ("PRAGMA application_id = 7", "something else"),
        ("UPDATE sqlite_schema SET sql = replace(sql, '+ 1', '+ 2')", None),
        ("UPDATE sqlite_schema SET sql = replace(sql, 'NEW.offset', 'offset')", None),
        (
            "UPDATE sqlite_schema SET sql = replace(sql, 'epoch = NEW.epoch', 'epoch = epoch')",
            "its schema is not the one of format 4",
        ),
        ("DELETE FROM sqlite_schema WHERE name = 'supersede'", "its schema is not the one"),
    ],
)
async def test_other_formats_are_refused(
    make: Make, tmp_path: Path, statement: str, said: str | None
) -> None:
    store = make()
    await opened(store)
    await store.close()
    change(tmp_path, statement)
    if said is None:
        await make().open(0)
        return
    with pytest.raises(StoreRefused, match=said):
        await make().open(0)


async def test_file_that_is_no_database_is_refused(make: Make, tmp_path: Path) -> None:
    """Predecessors: where the database could not be opened, the server ran in memory."""
    (tmp_path / "jobline.db").write_bytes(b"no database" * 1_000)
    with pytest.raises(StoreRefused, match="not a database"):
        await make().open(0)
    assert (tmp_path / "jobline.db").read_bytes().startswith(b"no database")


async def test_item_of_a_kind_that_is_not_known_is_not_set_apart(make: Make) -> None:
    """Its checksum is right: a newer version wrote it, and the loader must get to refuse it."""
    store = make()
    writer = await opened(store, shard=1)
    await checkpoint(store, writer, [ItemRow(1, cast("ItemKind", 99), 5, b"newer")])
    await store.close()
    store = make()
    await opened(store, shard=1)
    assert await items_of(store, 1) == {(99, 5): b"newer"}
    await store.close()


@pytest.mark.parametrize(
    "rot",
    [
        "UPDATE item SET blob = x'00' WHERE key = 5",
        "UPDATE item SET checksum = checksum + 1 WHERE key = 5",
        "UPDATE item SET key = 6 WHERE key = 5",
        "UPDATE item SET kind = 2 WHERE key = 5",
    ],
)
async def test_bad_item_is_set_apart_and_its_neighbours_go_on(
    make: Make, tmp_path: Path, rot: str
) -> None:
    store = make()
    writer = await opened(store, shard=1)
    await checkpoint(store, writer, [job(key, b"job", shard=1) for key in (4, 5, 7)])
    await store.close()
    change(tmp_path, rot)
    store = make()
    await opened(store)
    found = [row async for page in store.items(1) for row in page]
    assert [type(row) for row in found].count(BadRow) == 1
    assert sum(isinstance(row, ItemRow) for row in found) == 2
    assert await bad_of(store, 1) == [], "it is out of the way"
    assert set(await items_of(store, 1)) == {(3, 4), (3, 7)}
    await store.close()
    connection = sqlite3.connect(tmp_path / "jobline.db")
    assert connection.execute("SELECT source, shard FROM set_apart").fetchall() == [("item", 1)]
    connection.close()


async def test_index_that_lost_a_row_is_found_and_made_anew(make: Make, tmp_path: Path) -> None:
    store = make()
    writer = await opened(store)
    await checkpoint(store, writer, [job(4), job(5), job(6)])
    await store.close()
    index = "CREATE UNIQUE INDEX item_place ON item (shard, kind, key, generation)"
    change(
        tmp_path,
        f"UPDATE sqlite_schema SET sql = '{index} WHERE key <> 5' WHERE name = 'item_place'",
        "REINDEX",
        f"UPDATE sqlite_schema SET sql = '{index}' WHERE name = 'item_place'",
    )
    with pytest.raises(StoreRefused, match="is damaged"):
        await make().open(0)
    store = make(replace(SMALL, losses=Losses(accepted=True)))
    await opened(store)
    assert set(await items_of(store)) == {(3, 4), (3, 5), (3, 6)}


async def test_what_cannot_be_read_is_a_loss(make: Make) -> None:
    store = make()
    await opened(store)
    await store.database.run(lambda raw: raw.execute("DROP TABLE journal"))
    with pytest.raises(DataLoss, match="no such table"):
        await blobs_of(store)


def test_every_statement_has_a_name_a_sentence_and_a_use() -> None:
    folder = Path(statements.__file__).parent
    rooms = (folder, folder.parents[1] / "offline")
    code = "".join(file.read_text() for room in rooms for file in room.rglob("*.py"))
    for file in (folder / "sql").glob("*.sql"):
        if file.name == "pragmas.sql" or "schema" in file.name:
            continue
        blocks = re.split(r"^-- name: ", file.read_text(), flags=re.MULTILINE)[1:]
        for block in blocks:
            name, sentence, *_ = block.splitlines()
            assert re.fullmatch(r"-- \S.*", sentence), f"{name} has no sentence"
            assert f'"{name}"' in code, f"{name} of {file.name} is not used"


def test_values_are_repeated_as_often_as_there_are_rows() -> None:
    assert statements.repeated("INSERT INTO t VALUES (?, ?) ON x", 3) == (
        "INSERT INTO t VALUES (?, ?), (?, ?), (?, ?) ON x"
    )
    with pytest.raises(ValueError, match="no row of VALUES"):
        statements.repeated("SELECT 1", 2)
