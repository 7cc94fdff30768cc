"""The contracts of stores, run on SQLite."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobline_server.storage.sqlite.store import SqliteStore
from jobline_server.storage.store import Store
from tests.storage.checkpoint_contract import CheckpointContract, Plan
from tests.storage.sqlite_stores import SMALL
from tests.storage.storage_contract import StoreContract


class OneDirectory:
    """Gives stores of one directory, and closes them."""

    @pytest.fixture(autouse=True)
    async def _directory(self, tmp_path: Path) -> AsyncIterator[None]:
        self._path = tmp_path
        self._stores: list[Store] = []
        yield
        for store in self._stores:
            await store.close()

    def store(self) -> Store:
        self._stores.append(SqliteStore(self._path, SMALL))
        return self._stores[-1]


class TestSqliteStore(OneDirectory, StoreContract):
    # Nobody can be asked what is on a disk that failed.
    can_resolve = False


class TestSqliteCheckpoints(OneDirectory, CheckpointContract):
    pass


keys = st.lists(st.integers(0, 9), max_size=4, unique=True)
steps = st.tuples(st.sampled_from(["stage", "stage", "finish", "truncate", "crash"]), keys, keys)


@settings(max_examples=40, deadline=None)
@given(st.lists(steps, max_size=14))
def test_items_are_those_of_the_last_finished_checkpoint(
    plan: list[tuple[str, list[int], list[int]]],
) -> None:
    with TemporaryDirectory() as name:
        asyncio.run(Plan(lambda: SqliteStore(Path(name), SMALL)).walk(plan))
