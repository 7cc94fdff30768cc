"""`finished.db` of format 5, which knew one time for all: stale jobs were deleted after an hour."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from jobline_server.storage.ended_store import EndedScan, MarkStale, ScanOrder
from jobline_server.storage.sqlite.ended_store import FINISHED_FILE, SqliteEndedJobStore
from tests.storage.ended_reference import put, run_of

HOUR_MS = 3_600_000
# What `finished_schema.sql` was, where it differs.
BACK_TO_5 = """
DROP INDEX ended_stale;
ALTER TABLE ended DROP COLUMN delete_ms;
ALTER TABLE ended DROP COLUMN delete_after_ms;
CREATE INDEX ended_stale ON ended (stale_ms) WHERE state = 9;
PRAGMA user_version = 5;
"""


async def test_a_file_of_format_5_opens_with_the_hour(tmp_path: Path) -> None:
    """What was stale goes when it was to go; what becomes stale later goes as it is told."""
    store = SqliteEndedJobStore(tmp_path)
    await store.open()
    await store.write([put(1), put(2), MarkStale(1, 1, 1_000, 1_000 + HOUR_MS)])
    await store.close()
    with closing(sqlite3.connect(tmp_path / FINISHED_FILE)) as connection:
        connection.executescript(BACK_TO_5)

    store = SqliteEndedJobStore(tmp_path)
    await store.open()
    try:
        await store.write([MarkStale(2, 1, 2_000, 2_500)])
        spans = await store.scan(EndedScan(ScanOrder.STALE))
        assert [(span.first_id, span.at_ms) for span in spans] == [(2, 2_500), (1, 1_000 + HOUR_MS)]
        found = await store.get_many([1, 2])
        assert [row.delete_ms for row in found.rows.values()] == [1_000 + HOUR_MS, 2_500]
        assert found.rows[1].blob == run_of(1).blob
        assert not found.bad
    finally:
        await store.close()
