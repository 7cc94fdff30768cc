"""The folder in which copies are made for backups, one in each folder of it, and their names."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

# What `name_of` returns; `offline/backups/manifest` has the same.
_NAME = re.compile(r"\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{16}")


def name_of(at_ms: int, store: str) -> str:
    """Returns the name of a backup of this moment."""
    moment = datetime.fromtimestamp(at_ms / 1_000, UTC)
    return f"{moment:%Y%m%dT%H%M%S}.{at_ms % 1_000:03}Z-{store}"


def take_unfinished(folder: Path) -> tuple[str, ...]:
    """Returns the names of backups that were begun here and cut off; deletes their copies. What
    somebody else has put there stays.
    """
    if not folder.is_dir():
        return ()
    names = tuple(sorted(path.name for path in folder.iterdir() if _is_ours(path)))
    for name in names:
        empty(folder / name)
    return names


def empty(folder: Path) -> None:
    """Deletes the files in a folder, as far as that can be done."""
    with suppress(OSError):
        for path in folder.iterdir():
            path.unlink()


def remove_empty(folder: Path) -> None:
    """Removes a folder, unless anything is in it."""
    with suppress(OSError):
        folder.rmdir()


def _is_ours(path: Path) -> bool:
    return bool(_NAME.fullmatch(path.name)) and path.is_dir() and not path.is_symlink()
