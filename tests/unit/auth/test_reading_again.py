"""The file of keys and roles, read again after it could not be."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from jobline_server.auth.access_file import WrongAccessFile
from jobline_server.auth.api_keys import hash_of
from tests.unit.auth.test_authenticator import KEY, KEYS, ROLES, World


async def test_a_file_that_could_not_be_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without descriptors for a moment, a key that was taken out stayed in force until the next
    change. It is one failure, however often it is tried.
    """
    world = World(tmp_path)
    await world.callers.caller_of(f"Bearer {KEY}")
    world.path.write_text(ROLES + KEYS.replace(hash_of(KEY), hash_of("other")))

    def none_left(path: Path, encoding: str) -> str:
        raise OSError(errno.EMFILE, "Too many open files", str(path))

    with monkeypatch.context() as context:
        context.setattr(Path, "read_text", none_left)
        with pytest.raises(WrongAccessFile, match="too many open files"):
            await world.callers.reload()
        assert not await world.callers.reload()
    assert (world.callers.reload_failures, world.callers.is_wrong) == (1, True)
    assert await world.callers.reload()
    assert not world.callers.is_wrong
    assert await world.refused(f"Bearer {KEY}") == "TOKEN_UNKNOWN"
    assert not await world.callers.reload()


@pytest.mark.parametrize("text", ["a = " + "[" * 20_000, "a = " + "9" * 6_000])
async def test_a_file_that_the_parser_gives_up_is_a_wrong_one(tmp_path: Path, text: str) -> None:
    """It raised what nobody expected: neither a counter nor the log named the file."""
    world = World(tmp_path)
    world.path.write_text(text)
    with pytest.raises(WrongAccessFile, match=f"{world.path}: is not TOML"):
        await world.callers.reload()
    assert (world.callers.reload_failures, world.callers.is_wrong) == (1, True)
    assert not await world.callers.reload()
    await world.callers.caller_of(f"Bearer {KEY}")
    world.path.write_text(ROLES + KEYS)
    assert await world.callers.reload()
    assert not world.callers.is_wrong
