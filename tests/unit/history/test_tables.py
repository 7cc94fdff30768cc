"""Rows as they are in the files."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobline_server.history.files import OpenFiles
from jobline_server.history.rows import ROWS_PER_ENTRY, Rows, ShardRows
from jobline_server.history.schema import SCHEMA, SCHEMA_VERSION
from jobline_server.history.tables import batch_of

AT = 1_800_000_000_000
HOUR_MS = 3_600_000


def written(*entries: list[Rows]) -> dict[str, list[dict[str, Any]]]:
    """Returns the rows of each file, by its path, after entries 1, 2 …"""
    gathered, files = ShardRows(0), OpenFiles()
    for number, rows in enumerate(entries, 1):
        gathered.add(number, rows)
    assert files.write(3, [batch_of(*gathered.take())]) > 0
    assert (gathered.rows, gathered.count, gathered.journal_offset) == ([], 0, len(entries))
    found = {}
    for file in files.close(3):
        table = pq.ParquetFile(pa.BufferReader(file.content)).read()
        assert table.schema.equals(SCHEMA)
        assert len(table) == file.rows
        found[file.path] = table.to_pylist()
    assert files.oldest_ms() == []
    return found


def test_rows_of_many_jobs_are_one_row_for_each() -> None:
    lot = Rows(AT, "pushed", "q", (10, 20), (2, 1), 3, name="mail", priority=5, payload_bytes=7)
    own = Rows(AT, "completed", "q", (30,), (2,), 2, sizes=[4, 6], final=True, pushed_at=AT - 5)
    ((path, rows),) = written([lot, own], [Rows(AT + 1, "operation", principal="me")]).items()
    first, last = ROWS_PER_ENTRY, 2 * ROWS_PER_ENTRY
    assert path == f"events/date=2027-01-15/hour=08/3-{first}-{last}.parquet"
    assert [row["job_id"] for row in rows] == [10, 11, 20, 30, 31, None]
    assert [row["offset"] for row in rows] == [*range(first, first + 5), last]
    assert [row["payload_bytes"] for row in rows] == [7, 7, 7, 4, 6, None]
    assert [row["name"] for row in rows] == ["mail"] * 3 + [None] * 3
    assert {row["shard"] for row in rows} == {3}
    assert {row["schema_version"] for row in rows} == {SCHEMA_VERSION}
    assert rows[0]["at"] == datetime.fromtimestamp(AT / 1_000, UTC)
    assert (rows[3]["final"], rows[0]["final"]) == (True, None)
    assert rows[5]["principal"] == "me"


def test_what_only_pushes_have_is_kept() -> None:
    push = Rows(
        AT, "pushed", "q", (1,), (1,), depends_on=(7, 8), tags=("a", "b"), headers={"k": "v"}
    )
    ((_, (row,)),) = written([push]).items()
    assert (row["depends_on"], row["tags"], row["headers"]) == ([7, 8], ["a", "b"], [("k", "v")])


def test_each_hour_has_files_of_its_own() -> None:
    rows = [Rows(AT, "pushed", "q", (1,), (1,)), Rows(AT + HOUR_MS, "leased", "q", (1,), (1,))]
    files = written(rows)
    assert [path.split("/")[2] for path in files] == ["hour=08", "hour=09"]
    assert [row["event"] for rows in files.values() for row in rows] == ["pushed", "leased"]


def test_offsets_are_never_those_of_the_next_entry() -> None:
    rows = Rows(AT, "pushed", "q", (1,), (ROWS_PER_ENTRY + 1,), ROWS_PER_ENTRY + 1)
    with pytest.raises(OverflowError):
        ShardRows(0).add(1, [rows])
