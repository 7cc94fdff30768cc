"""The folder in which copies are made for backups, one in each folder of it, and their names."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path


def name_of(at_ms: int, store: str) -> str:
    """Returns the name of a backup of this moment."""
    moment = datetime.fromtimestamp(at_ms / 1_000, UTC)
    return f"{moment:%Y%m%dT%H%M%S}.{at_ms % 1_000:03}Z-{store}"


def take_unfinished(folder: Path) -> tuple[str, ...]:
    """Returns the names of backups that were begun here and cut off; deletes their copies."""
    if not folder.is_dir():
        return ()
    names = tuple(sorted(path.name for path in folder.iterdir() if path.is_dir()))
    for name in names:
        empty(folder / name)
    return names


def empty(folder: Path) -> None:
    """Deletes the files in a folder, as far as that can be done."""
    with suppress(OSError):
        for path in folder.iterdir():
            path.unlink()
