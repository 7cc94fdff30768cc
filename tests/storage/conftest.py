"""Stores for the tests of this folder, closed when a test is over: their threads would outlive
it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobline_server.storage.sqlite.store import SqliteSettings, SqliteStore
from tests.storage.sqlite_stores import SMALL, Make


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """Makes stores, of one directory unless it is told another."""
    made: list[SqliteStore] = []

    def one(settings: SqliteSettings = SMALL, directory: Path = tmp_path) -> SqliteStore:
        made.append(SqliteStore(directory, settings))
        return made[-1]

    yield one
    for store in made:
        await store.close()
