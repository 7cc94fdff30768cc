"""The files of a directory tree, and their checksums."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

# Directories that tools make in a checkout. `.git` would change during the demo.
SKIPPED = frozenset(
    {
        ".bench",
        ".demo",
        ".gen-venv",
        ".git",
        ".hypothesis",
        ".tools",
        ".venv",
        "__pycache__",
        "node_modules",
    }
)
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Listed:
    """A file as it was found, to tell a later change from a wrong checksum."""

    path: str
    size: int
    modified_ns: int


def find(tree: Path) -> list[Listed]:
    """Returns all regular files below a directory, by path, except in `SKIPPED` directories."""
    found: list[Listed] = []
    for folder, folders, names in os.walk(tree):
        folders[:] = sorted(name for name in folders if not is_skipped(name))
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                found.append(listed(path))
    return found


def listed(path: Path) -> Listed:
    """Returns a file as it is now."""
    status = path.stat()
    return Listed(str(path), status.st_size, status.st_mtime_ns)


def is_skipped(folder: str) -> bool:
    """Returns whether a folder was made by a tool."""
    return folder in SKIPPED or (folder.startswith(".") and folder.endswith("_cache"))


def checksum(path: Path) -> tuple[str, int]:
    """Returns the SHA-256 of a file in hexadecimal, and its size."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as opened:
        while chunk := opened.read(_CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    return digest.hexdigest(), size
