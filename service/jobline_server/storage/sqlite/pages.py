"""The pages of a database file: how many are free, and by how much the file will grow."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from jobline_server.storage.sqlite.failures import autocommit
from jobline_server.storage.store import DiskFull

SQLITE_PAGE_BYTES = 8_192


def growth(raw: sqlite3.Connection, file: Path, size_bytes: int) -> int:
    """Returns by how many bytes the file will grow when its WAL is moved, after so many more."""
    size = int(raw.execute("PRAGMA page_count").fetchone()[0]) * SQLITE_PAGE_BYTES
    added = max(size_bytes - free_pages(raw) * SQLITE_PAGE_BYTES, 0)
    return max(size + added - file.stat().st_size, 0)


def free_pages(raw: sqlite3.Connection) -> int:
    """Returns the pages that are free."""
    return int(raw.execute("PRAGMA freelist_count").fetchone()[0])


def vacuum(raw: sqlite3.Connection, pages_max: int) -> None:
    """Cuts free pages off, fewer where the WAL has no room for more. Raises `DiskFull` if it has
    none for one.
    """
    pages = pages_max
    while True:
        statement = f"PRAGMA incremental_vacuum({pages})"
        try:
            # A script runs to its end; `execute` would stop after the first page.
            autocommit(raw, lambda: raw.executescript(statement))  # noqa: B023  # called at once
        except DiskFull:
            if pages == 1:
                raise
            pages = max(pages // 16, 1)
        else:
            return
