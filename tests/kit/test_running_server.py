"""A server for tests without the fixture."""

from __future__ import annotations

import tempfile
from pathlib import Path

from jobline_server.dev.memory_directory import memory_root
from jobline_server.testing import running_server


async def test_its_directory_is_in_memory_where_there_is_room() -> None:
    """What a start syncs costs nothing there; the directory is gone with the server."""
    async with running_server() as server:
        assert list(server.data.iterdir())
        assert server.data.is_relative_to(memory_root() or Path(tempfile.gettempdir()))
    assert not server.data.parent.exists()


async def test_a_directory_that_it_was_given_stays(tmp_path: Path) -> None:
    async with running_server(tmp_path / "data") as server:
        assert server.data == tmp_path / "data"
    assert list(server.data.iterdir())
