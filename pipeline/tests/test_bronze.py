"""Exported files become files of bronze `events`."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from delta.tables import DeltaTable
from pyspark.sql import functions as F

from jobline_pipeline.store import Store
from jobline_pipeline.tables import events, files
from tests.rows import at, completed, pushed, write_events
from tests.running import contents, run


def mixed(history):
    """Files that are taken whole, in part, without what lies in the future; and one of two days."""
    write_events(history, [pushed(n) for n in range(1, 11)])
    write_events(history, [pushed(n) for n in range(9, 13)])
    write_events(history, [pushed(50), pushed(51, at=at(86_400 * 365))])
    write_events(history, [pushed(60), pushed(61, at=at(86_400))])
    write_events(history, [completed(70, 1)], shard=1)
    return [*range(1, 13), 50, 60, 61, 70]


def offsets(spark, root):
    return sorted(row.offset for row in Store(spark, str(root)).read(events.TABLE).collect())


def test_whole_file_is_copied_as_it_is(spark, tmp_path):
    """Byte for byte, beside nothing else; the exported one may go then."""
    history, root = tmp_path / "history", tmp_path / "tables"
    path = write_events(history, [pushed(n) for n in range(1, 11)])
    exported = path.read_bytes()
    run(spark, history, root)
    copies = [copy.read_bytes() for copy in (root / "bronze" / "events").glob("date=*/*.parquet")]
    assert copies == [exported]
    path.unlink()
    assert offsets(spark, root) == [*range(1, 11)]


def test_batch_is_one_commit(spark, tmp_path):
    """Also if some of its rows have to be written again."""
    history, root = tmp_path / "history", tmp_path / "tables"
    expected = mixed(history)
    run(spark, history, root)
    assert offsets(spark, root) == expected
    versions = DeltaTable.forPath(spark, str(root / "bronze" / "events")).history().count()
    assert versions == 1
    days = Store(spark, str(root)).read(events.TABLE).where(F.col("date") != F.to_date("at"))
    assert days.count() == 0


def test_rows_that_are_written_again_make_the_same_tables(spark, tmp_path, monkeypatch):
    """As with Spark Connect, where nothing can be entered in the log of a table."""
    history = tmp_path / "history"
    mixed(history)
    run(spark, history, tmp_path / "copied")
    monkeypatch.setattr(Store, "jvm", None)
    run(spark, history, tmp_path / "written")
    assert contents(spark, tmp_path / "copied") == contents(spark, tmp_path / "written")


@pytest.mark.parametrize("column", ["at", "offset", "job_id", "batch_id", "pushed_at"])
def test_statistics_hide_no_row(spark, tmp_path, column):
    """The first and the last value of a file are found, to the microsecond."""
    history, root = tmp_path / "history", tmp_path / "tables"
    rows = [
        completed(n, n, at=at(n + 0.1234565 + n / 1e6), batch_id=n % 3 or None)
        for n in range(1, 11)
    ]
    write_events(history, rows)
    write_events(history, [pushed(n) for n in range(100, 110)])
    run(spark, history, root)
    table = Store(spark, str(root)).read(events.TABLE)
    values = [row[column] for row in table.select(column).collect() if row[column] is not None]
    for edge in (min(values), max(values)):
        literal = F.lit(edge)
        found = table.where((F.col(column) >= literal) & (F.col(column) <= literal)).count()
        assert found == values.count(edge)


@pytest.mark.parametrize("column", ["trace_id", "headers.key_value.value", "payload_bytes"])
def test_damaged_page_of_any_column_is_found(spark, tmp_path, column):
    """Also of one that no other table reads."""
    history, root = tmp_path / "history", tmp_path / "tables"
    rows = [
        pushed(n, trace_id=f"{n * 7919:x}", headers=[("k", f"{n * 104729:x}")], payload_bytes=n)
        for n in range(1, 3000)
    ]
    path = write_events(history, rows)
    group = pq.ParquetFile(path).metadata.row_group(0)
    chunk = next(
        group.column(n) for n in range(group.num_columns)
        if group.column(n).path_in_schema == column
    )  # fmt: skip
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    data = bytearray(path.read_bytes())
    data[begin : begin + 60] = bytes(60)
    path.write_bytes(data)
    run(spark, history, root)
    assert [row.status for row in Store(spark, str(root)).read(files.TABLE).collect()] == ["bad"]
