"""A runtime over a store in memory would be a fake: these tests take the real files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import pytest

from jobline_server.runtime.clock import ManualClock
from jobline_server.runtime.opening import open_runtime
from jobline_server.runtime.runtime import Runtime, RuntimeSettings
from jobline_server.storage.recovery import SetApart
from jobline_server.storage.sqlite.finished import SqliteFinished
from jobline_server.storage.sqlite.store import SqliteSettings, SqliteStore


def nothing_is_damaged(found: SetApart) -> None:
    raise AssertionError(found)


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    """A runtime whose loop is not started: commits go when a test says so."""
    names = count(1)
    opened = await open_runtime(
        SqliteStore(tmp_path, SqliteSettings(ballast_bytes=0)),
        SqliteFinished(tmp_path),
        shards=1,
        clock=ManualClock(),
        settings=RuntimeSettings(),
        new_name=lambda: f"name-{next(names)}",
        report=nothing_is_damaged,
    )
    yield opened
    await opened.ended.finished.close()
    await opened.core.store.close()
