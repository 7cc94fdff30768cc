"""Backups to an object store that is reached over a socket, by the URL of fsspec."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

# In CI that is a mistake, and importing the store below fails.
if find_spec("moto") is None and os.environ.get("CONNECT_CLIENT") != "required":
    pytest.skip("needs an emulation of S3: make object-store", allow_module_level=True)

from jobline import AsyncClient, BackupState
from jobline_server.offline.opening import CannotRead
from jobline_server.testing import ServerProcess, running_server
from tests.backing_up import (
    all_jobs,
    as_kept,
    backed_up,
    destination_asked,
    ended,
    fill,
    metric,
    restored,
)
from tests.object_store import (
    BUCKET,
    PART_BYTES,
    SECRET_KEY,
    ObjectStore,
    forget_connections,
    is_second_part,
    object_store,
)

TO = f"s3://{BUCKET}/jobline"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """An open store with a bucket."""
    with object_store(monkeypatch) as opened:
        yield opened


async def test_backups_are_kept_counted_and_restored(store: ObjectStore, tmp_path: Path) -> None:
    """Given one to keep; then the second takes the first away, and has every job."""
    async with (
        running_server(tmp_path / "data", backup_to=TO, backup_keep=1) as server,
        AsyncClient(server.address) as client,
    ):
        first = await backed_up(client)
        assert store.folders(f"{BUCKET}/jobline") == {first.name}
        await fill(client)
        before = await all_jobs(client)
        second = await backed_up(client)
    assert store.folders(f"{BUCKET}/jobline") == {second.name}
    await restored(TO, tmp_path / "new")
    async with running_server(tmp_path / "new") as server, AsyncClient(server.address) as client:
        after = await all_jobs(client)
    assert list(map(as_kept, after.values())) == list(map(as_kept, before.values()))


async def test_wrong_credentials_fail_and_right_ones_go_on(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The problem names what is wrong, and no secret; the queue goes on."""
    refused = "Access Key Id you provided does not exist"
    async with (
        running_server(tmp_path / "data", backup_to=TO) as server,
        AsyncClient(server.address) as client,
    ):
        await destination_asked(server.http)
        with monkeypatch.context() as wrong:
            wrong.setenv("AWS_ACCESS_KEY_ID", "AKIAOTHER")
            await client.admin.backup()
            failed = await ended(client)
            with pytest.raises(CannotRead, match=f"{TO} cannot be reached: ") as said:
                await restored(TO, tmp_path / "new")
            forget_connections()
        assert failed.state is BackupState.FAILED
        assert refused in failed.problem
        assert SECRET_KEY not in failed.problem + str(said.value)
        assert await metric(server.http, "failures_total") == 1
        assert not (tmp_path / "new").exists()
        await client.push("mail", {"n": 1})
        made = await backed_up(client)
    assert store.folders(f"{BUCKET}/jobline") == {made.name}


async def test_a_store_that_is_away_is_a_failure_and_the_next_backup_is_whole(
    store: ObjectStore, tmp_path: Path
) -> None:
    """What the alert compares stays at the last whole one."""
    async with (
        running_server(tmp_path / "data", backup_to=TO) as server,
        AsyncClient(server.address) as client,
    ):
        await destination_asked(server.http)
        first = await backed_up(client)
        seen = await metric(server.http, "last_success_timestamp_seconds")
        store.shut()
        await client.admin.backup()
        failed = await ended(client)
        assert failed.state is BackupState.FAILED
        assert f"127.0.0.1:{store.port}" in failed.problem
        assert await metric(server.http, "failures_total") == 1
        assert await metric(server.http, "last_success_timestamp_seconds") == seen
        await client.push("mail", {"n": 1})
        store.open()
        second = await backed_up(client)
        assert await metric(server.http, "failures_total") == 1
        assert await metric(server.http, "last_success_timestamp_seconds") != seen
    assert store.folders(f"{BUCKET}/jobline") == {first.name, second.name}


async def test_an_upload_that_is_killed_in_the_middle_leaves_no_backup(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a file of which a part is missing at the store; then none of it can be seen, nothing is
    taken for a backup, the next start deletes the other files, and the next backup is whole.
    """
    monkeypatch.setenv("FSSPEC_S3", f'{{"default_block_size": {PART_BYTES}}}')
    server = ServerProcess(tmp_path / "data", backup_to=TO)
    async with server, AsyncClient(server.address) as client:
        for _ in range(4):
            await client.push_payloads("big", [b"x" * 50_000] * 80)
        store.gate.holds = is_second_part
        await client.admin.backup()
        assert await asyncio.to_thread(store.gate.held.wait, 60)
        await server.kill()
        store.gate.holds = lambda _: False
        with pytest.raises(CannotRead, match="there is no whole backup"):
            await restored(TO, tmp_path / "new")
        assert len(store.folders(f"{BUCKET}/jobline")) == 1
        await server.start()
        while store.folders(f"{BUCKET}/jobline"):  # noqa: ASYNC110  # by another process
            await asyncio.sleep(0.05)
        made = await backed_up(client)
        assert await server.terminate() == 0
    assert store.folders(f"{BUCKET}/jobline") == {made.name}
    await restored(TO, tmp_path / "new")
