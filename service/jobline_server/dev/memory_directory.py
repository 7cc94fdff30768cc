"""Directories that are in memory: on a memory file system where there is one with room.

SQLite syncs there as everywhere, which costs nothing. A process that was killed leaves its
directory, and with it the memory: the next one to make a directory removes what nobody holds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Of Linux; elsewhere directories are where temporary files are.
MEMORY = Path("/dev/shm")  # noqa: S108  # a name of our own is made in it, by mkdtemp
# Containers often have 64 MiB there, which a test may fill.
FREE_BYTES_MIN = 512 << 20
PREFIX = "jobline-memory-"
# The file whose lock says that a directory is in use.
HELD = "held"
# Those of others that were killed, removed each time.
LEFTOVERS_MAX = 100


def memory_root() -> Path | None:
    """Returns the memory file system; None where there is none with room for us."""
    with suppress(OSError):
        if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= FREE_BYTES_MIN:
            return MEMORY
    return None


@contextmanager
def memory_directory() -> Iterator[Path]:
    """Makes an empty directory for the length of the block, in memory where possible."""
    root = memory_root()
    remove_leftovers(root)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
    try:
        unheld = folder / "unheld"
        with unheld.open("w") as held:
            # Before it has its name: others remove what has a name and no lock.
            fcntl.flock(held, fcntl.LOCK_EX)
            unheld.rename(folder / HELD)
            data = folder / "data"
            data.mkdir()
            yield data
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(root: Path | None) -> None:
    """Removes directories of processes that were killed."""
    found = Path(root or tempfile.gettempdir()).glob(f"{PREFIX}*/{HELD}")
    for _, path in zip(range(LEFTOVERS_MAX), found, strict=False):
        with suppress(OSError), path.open("r+") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path.parent, ignore_errors=True)
