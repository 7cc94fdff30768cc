"""Operations in finished.db: found by what they may be filtered by, the newest first."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobline_server.engine.operations import OperationQuery
from jobline_server.storage.ended_store import PutOperation
from jobline_server.storage.operations import NO_OPERATIONS, OperationRow
from jobline_server.storage.sqlite.ended_store import SqliteEndedJobStore


def row(name: str, **fields: object) -> OperationRow:
    made = OperationRow(name, 1_000, 1_000, "ops", "PauseQueue", "mail", "", b"blob")
    return made._replace(**fields)  # type: ignore[arg-type]


async def store_of(path: Path, *rows: OperationRow) -> SqliteEndedJobStore:
    store = SqliteEndedJobStore(path)
    await store.open()
    await store.write([PutOperation(one) for one in rows])
    return store


async def ids(store: SqliteEndedJobStore, **conditions: object) -> list[bytes]:
    query = OperationQuery(**conditions)  # type: ignore[arg-type]
    return [one.blob for one in await store.operations.find(query)]


async def test_an_end_is_not_replaced_by_its_begin(tmp_path: Path) -> None:
    """The journals of two shards are read one after the other."""
    begun, done = row("a", ended_ms=0, blob=b"begun"), row("a", blob=b"done")
    store = await store_of(tmp_path, done, begun, done)
    assert await ids(store) == [b"done"]
    await store.close()
    store = await store_of(tmp_path, row("b", ended_ms=0, blob=b"begun"), row("b", blob=b"b"))
    assert await ids(store) == [b"b", b"done"]
    await store.close()


CASES: list[tuple[dict[str, object], list[bytes]]] = [
    ({}, [b"3", b"2", b"1"]),
    ({"id": "b"}, [b"2"]),
    ({"id": "b", "queue": "mail"}, []),
    ({"queue": "mail"}, [b"3", b"1"]),
    ({"verb": "DrainQueue"}, [b"2"]),
    ({"principal": "root"}, [b"3"]),
    ({"after_ms": 2_000}, [b"3", b"2"]),
    ({"before_ms": 2_000}, [b"1"]),
    ({"before": 3, "limit": 1}, [b"2"]),
]


@pytest.mark.parametrize(("conditions", "wanted"), CASES)
async def test_all_conditions_hold(
    tmp_path: Path, conditions: dict[str, object], wanted: list[bytes]
) -> None:
    store = await store_of(
        tmp_path,
        row("a", blob=b"1"),
        row("b", began_ms=2_000, verb="DrainQueue", queue="other", blob=b"2"),
        row("c", began_ms=3_000, principal="root", undoes="a", blob=b"3"),
    )
    assert await ids(store, **conditions) == wanted
    first = await store.operations.find(OperationQuery(id="a"))
    assert [one.undone_by for one in first] == ["c"]
    await store.close()


async def test_a_store_may_keep_none() -> None:
    assert not await NO_OPERATIONS.find(OperationQuery())
    assert not await NO_OPERATIONS.delete_old(1, 1, 1)
