"""Backups that are damaged or newer, and directories in use: refused, with nothing left."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from jobline import AsyncClient
from jobline_server.offline.backups.finishing import FILES
from jobline_server.offline.backups.manifest import MANIFEST_FILE
from jobline_server.offline.opening import CannotRead, Why
from jobline_server.testing import running_server
from tests.backing_up import backed_up, restored


@pytest.fixture
async def whole(tmp_path: Path) -> Path:
    """A backup with a few jobs."""
    to = tmp_path / "to"
    async with (
        running_server(tmp_path / "data", backup_to=str(to)) as server,
        AsyncClient(server.address) as client,
    ):
        await client.push_many("mail", [{"n": number} for number in range(500)])
        await client.ack(*await client.pull("mail", max_jobs=100))
        await server.runtime.ended.writer.write()
        made = await backed_up(client)
    return to / made.name


@pytest.mark.parametrize("name", [*FILES, MANIFEST_FILE])
async def test_flipped_bit_is_refused_with_the_name_of_the_file(
    whole: Path, tmp_path: Path, name: str
) -> None:
    """Given any file of a backup with one bit flipped, cut, or missing; then it is refused, and the
    new directory stays empty."""
    file = whole / name
    content = file.read_bytes()
    for place in range(3, len(content), max(len(content) // 7, 1)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << (place % 8)
        file.write_bytes(flipped)
        with pytest.raises(CannotRead, match=name.replace(".", "[.]")):
            await restored(whole, tmp_path / "new")
    file.write_bytes(content[:-1])
    with pytest.raises(CannotRead, match=name.replace(".", "[.]")):
        await restored(whole, tmp_path / "new")
    file.unlink()
    with pytest.raises(CannotRead):
        await restored(whole, tmp_path / "new")
    assert not (tmp_path / "new").exists() or not list((tmp_path / "new").iterdir())


async def test_newer_backup_and_used_directory_are_refused(whole: Path, tmp_path: Path) -> None:
    """Given a manifest of a newer version, or a directory with something in it; then nothing is
    written."""
    manifest = whole / MANIFEST_FILE
    content = manifest.read_bytes()
    manifest.write_text(json.dumps(json.loads(content) | {"format": 99}))
    with pytest.raises(CannotRead, match="the backup has format 99; this version reads") as caught:
        await restored(whole, tmp_path / "new")
    assert caught.value.why is Why.OTHER_FORMAT
    manifest.write_bytes(content)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "letter").write_text("mine")
    with pytest.raises(CannotRead, match="is not empty: it has letter"):
        await restored(whole, tmp_path / "new")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["letter"]


async def test_a_backup_is_read_from_the_folder_that_was_named(whole: Path, tmp_path: Path) -> None:
    """Given a copy of another name, with and without the one that has the old name beside it; then
    its own files are restored."""
    copy = whole.with_name("latest")
    shutil.copytree(whole, copy)
    (whole / FILES[0]).unlink()
    await restored(copy, tmp_path / "beside")
    shutil.rmtree(whole)
    await restored(copy, tmp_path / "alone")
    assert (tmp_path / "alone" / FILES[0]).exists()


async def test_restore_goes_on_after_one_that_was_cut_off(whole: Path, tmp_path: Path) -> None:
    """Given what a killed restore leaves; then the next one takes it away."""
    left = tmp_path / "new" / "restoring"
    left.mkdir(parents=True)
    shutil.copy(whole / "jobline.db", left)
    await restored(whole, tmp_path / "new")
    assert {path.name for path in (tmp_path / "new").iterdir()} == set(FILES)
