"""Files that each released version wrote are read by this one; those of a newer format are refused,
and stay as they are. `tests/fixtures_of_stores.py` makes them."""

from __future__ import annotations

import json
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jobline import AsyncClient
from jobline_server.offline.checks import check
from jobline_server.offline.opening import CannotRead, Why, find
from jobline_server.runtime.clock import ManualClock
from jobline_server.storage.store import StoreRefused
from jobline_server.testing import running_server
from tests.backing_up import Silent, restored
from tests.fixtures_of_stores import STORES, shown_by

VERSIONS = sorted(STORES.iterdir())
BYTES_MAX = 300 << 10


@pytest.fixture(params=VERSIONS, ids=[path.name for path in VERSIONS])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """The files of a version, unpacked into `tmp_path`; and what they held."""
    folder: Path = request.param
    assert sum(path.stat().st_size for path in folder.iterdir()) < BYTES_MAX
    for archive in folder.glob("*.tar.xz"):
        with tarfile.open(archive) as files:
            files.extractall(tmp_path, filter="data")
    shown: dict[str, Any] = json.loads((folder / "shown.json").read_text())
    return shown


def damage_in(data: Path) -> list[str]:
    """Returns what a check says is damaged."""
    return [str(found) for found in check(find(data), Silent()) if found.is_damaged]


async def drain(client: AsyncClient) -> int:
    """Works on all jobs that are ready, in queues that are not paused; returns how many."""
    done = 0
    for queue in ("mail", "report"):
        while jobs := await client.pull(queue, max_jobs=100, wait=0, lease=60):
            await client.ack(*jobs)
            done += len(jobs)
    return done


@pytest.mark.parametrize("source", ["store", "backup"])
async def test_files_of_each_version_are_read_worked_on_and_whole(
    tmp_path: Path, kept: dict[str, Any], source: str
) -> None:
    """Given a store that was killed, or a backup of it; then its jobs are there with their states,
    can be worked on, and what is left is whole."""
    data = tmp_path / "store"
    if source == "backup":
        data = tmp_path / "new"
        await restored(tmp_path / "backup", data)
    clock = ManualClock(kept["written_ms"])
    async with (
        running_server(data, clock=clock) as server,
        AsyncClient(server.address) as client,
    ):
        assert await shown_by(client) == kept["jobs"]
        assert await drain(client) > 0
        assert [one.name async for one in client.schedules.list()] == ["nightly"]
    assert not damage_in(data)


def test_history_of_each_version_is_read(tmp_path: Path, kept: dict[str, Any]) -> None:
    """Given files of the history; then their rows have the columns that readers use."""
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [
        row
        for path in (tmp_path / "history").rglob("*.parquet")
        for row in parquet.ParquetFile(path).read().to_pylist()
    ]
    assert {str(row["job_id"]) for row in rows if row["event"] == "pushed"} >= kept["jobs"].keys()


@pytest.mark.parametrize("name", ["jobline.db", "finished.db"])
async def test_newer_format_is_refused_and_not_touched(
    tmp_path: Path, kept: dict[str, Any], name: str
) -> None:
    """Given a store of a newer format; then a start and a check say so, and no byte changes."""
    assert kept["jobs"]
    data = tmp_path / "store"
    with closing(sqlite3.connect(data / name)) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute(f"PRAGMA user_version = {version + 5}")
        connection.commit()
    before = (data / name).read_bytes()
    with pytest.raises(StoreRefused, match=f"{name} has format {version + 5}; this version reads"):
        async with running_server(data):
            pass
    with pytest.raises(CannotRead) as caught:
        list(check(find(data), Silent()))
    assert caught.value.why is Why.OTHER_FORMAT
    assert (data / name).read_bytes() == before
