"""Tables that are written without Spark: exported files as they are, and few rows."""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from jobline_pipeline import store as stored
from jobline_pipeline.direct import Direct
from jobline_pipeline.history import look_at
from jobline_pipeline.local import opened
from jobline_pipeline.store import Batch, Store
from jobline_pipeline.tables import events, open_jobs
from tests.rows import NOON, at, completed, pushed, write_events
from tests.running import contents, run

MIDNIGHT = 43_200


def mixed(history):
    """Files that are taken whole, in part, without what lies in the future; and one of two days."""
    write_events(history, [pushed(n) for n in range(1, 11)])
    write_events(history, [pushed(n) for n in range(9, 13)])
    write_events(history, [pushed(50), pushed(51, at=at(86_400 * 365))])
    write_events(history, [pushed(60), pushed(61, at=at(MIDNIGHT + 1))])
    write_events(history, [completed(70, 1)], shard=1)
    return [*range(1, 13), 50, 60, 61, 70]


def later(history):
    """Files of a second batch, in the same minutes."""
    write_events(history, [completed(80, 2), completed(81, 3, event="dead", error="no 1")])
    write_events(history, [pushed(90, batch_id=7), completed(95, 90, batch_id=7)])


def offsets(spark, root):
    """Of typed events; simulated ones are of that morning."""
    rows = Store(spark, str(root)).read(events.TABLE).where(F.col("at") >= NOON)
    return sorted(row.offset for row in rows.collect())


def test_whole_file_is_copied_as_it_is(spark, tmp_path):
    """Byte for byte, and nothing else; the exported one may go then. Spark reads the log."""
    history, root = tmp_path / "history", tmp_path / "tables"
    path = write_events(history, [pushed(n) for n in range(1, 11)])
    exported = path.read_bytes()
    run(spark, history, root)
    folder = root / "bronze" / "events"
    assert [copy.read_bytes() for copy in folder.glob("date=*/*.parquet")] == [exported]
    path.unlink()
    assert offsets(spark, root) == [*range(1, 11)]
    by_log = spark.read.format("delta").load(str(folder)).select("offset", "date").collect()
    assert sorted(tuple(row) for row in by_log) == [(n, NOON.date()) for n in range(1, 11)]


@pytest.mark.timeout(900)
def test_both_engines_make_the_same_tables(spark, history, tmp_path, monkeypatch):
    """DuckDB in a directory, and Spark, as on an object store: of the simulated history, with files
    that are taken in part. The second batch goes on with what the other one has begun.
    """
    simulated, history = history, tmp_path / "history"
    shutil.copytree(simulated, history)
    taken = mixed(history)
    with monkeypatch.context() as patch:
        patch.setattr(stored, "_directory", lambda *_: None)
        run(spark, history, tmp_path / "other")
    run(spark, history, tmp_path / "direct")
    assert offsets(spark, tmp_path / "direct") == taken
    assert contents(spark, tmp_path / "direct") == contents(spark, tmp_path / "other")
    later(history)
    with monkeypatch.context() as patch:
        patch.setattr(stored, "_directory", lambda *_: None)
        run(spark, history, tmp_path / "direct")
    run(spark, history, tmp_path / "other")
    assert contents(spark, tmp_path / "direct") == contents(spark, tmp_path / "other")


@pytest.mark.parametrize("column", ["at", "offset", "job_id", "batch_id", "pushed_at"])
def test_statistics_hide_no_row(tmp_path, column):
    """The least and the greatest value of a file, as the log has them, hold all others."""
    history = tmp_path / "history"
    rows = [
        completed(n, n, at=at(n + 0.1234565 + n / 1e6), batch_id=n % 3 or None)
        for n in range(1, 11)
    ]
    path = write_events(history, rows)
    kept = _added(tmp_path, path)
    values = [row[column] for row in rows if row[column] is not None]
    least, greatest = (_value(kept[side][column]) for side in ("minValues", "maxValues"))
    assert least <= min(values)
    assert greatest >= max(values)
    assert kept["nullCount"][column] == len(rows) - len(values)
    assert kept["numRecords"] == len(rows)


def _value(shown):
    return datetime.fromisoformat(shown) if isinstance(shown, str) else shown


def _added(tmp_path, path):
    """Puts a file into a table of its own; returns the statistics of the log."""
    from jobline_pipeline.bronze import add_events  # noqa: PLC0415
    from jobline_pipeline.history import plan  # noqa: PLC0415

    now_us = int(at(86_400).timestamp() * 1e6)
    file = look_at(str(path), path.stat().st_size, now_us=now_us, thoroughly=True)
    direct = Direct(tmp_path / "tables")
    add_events(direct, plan([file], {}, now_us).read, Batch("q", 0))
    log = direct.path(events.TABLE) / "_delta_log" / f"{1:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (add,) = [action["add"] for action in actions if "add" in action]
    return json.loads(add["stats"])


@pytest.mark.parametrize("column", ["trace_id", "headers.key_value.value", "payload_bytes"])
def test_damaged_page_of_any_column_is_found(tmp_path, column):
    """Also of one that no other table reads."""
    rows = [
        pushed(n, trace_id=f"{n * 7919:x}", headers=[("k", f"{n * 104729:x}")], payload_bytes=n)
        for n in range(1, 3000)
    ]
    path = write_events(tmp_path, rows)
    group = pq.ParquetFile(path).metadata.row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    (chunk,) = [one for one in chunks if one.path_in_schema == column]
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    data = bytearray(path.read_bytes())
    data[begin : begin + 60] = bytes(60)
    path.write_bytes(data)
    now_us = int(at(86_400).timestamp() * 1e6)
    assert look_at(str(path), len(data), now_us=now_us).problem is None
    found = look_at(str(path), len(data), now_us=now_us, thoroughly=True)
    assert found.problem is not None
    assert "not whole" in found.problem


def test_both_libraries_write_checkpoints_of_one_log(spark, tmp_path):
    """Spark leaves a checksum of a file that the other library then replaces."""
    store = Store(spark, str(tmp_path))
    folder = str(store.path(open_jobs.TABLE))
    rows = stored.nothing(spark, open_jobs.TABLE).union(
        spark.range(1).select(
            [F.lit(1).cast(c.type).alias(c.name) for c in open_jobs.TABLE.columns]
        )
    )
    every_other = rows.write.format("delta").option("delta.checkpointInterval", "2")
    every_other.save(folder)
    for _ in range(2):
        rows.write.format("delta").mode("append").save(folder)
    with opened(store) as here:
        assert here is not None
        for number in [0, 0, 1, 1, 2, 2]:
            here.add(open_jobs.TABLE, rows.toArrow(), Batch("q", number))
    log = Path(folder) / "_delta_log"
    assert json.loads((log / "_last_checkpoint").read_text())["version"] > 2
    assert not (log / "._last_checkpoint.crc").exists()
    assert spark.read.format("delta").load(folder).count() == 6


def test_table_with_deletion_vectors_is_left_to_spark(spark, tmp_path):
    """A user may have switched them on; a row that is deleted stays so."""
    store = Store(spark, str(tmp_path))
    columns = [F.col("id").cast(c.type).alias(c.name) for c in open_jobs.TABLE.columns]
    rows = spark.range(10).select(columns)
    store.append(open_jobs.TABLE, rows, Batch("q", 0))
    table = f"delta.`{store.path(open_jobs.TABLE)}`"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    spark.sql(f"DELETE FROM {table} WHERE job_id = 3")
    with opened(store) as here:
        assert here is None
    store.append(open_jobs.TABLE, rows.where("job_id > 7"), Batch("q", 1))
    store.append(open_jobs.TABLE, rows, Batch("q", 1))
    found = [row.job_id for row in store.read(open_jobs.TABLE).collect()]
    assert sorted(found) == [0, 1, 2, 4, 5, 6, 7, 8, 8, 9, 9]


@pytest.mark.parametrize("name", ["plain", "it's", "with a space", "a[b]", "date=2026-11-02", "b*"])
def test_odd_paths_hide_no_row(spark, tmp_path, name):
    """DuckDB takes some for patterns: these are left to Spark."""
    root = tmp_path / name
    with opened(Store(spark, str(root))) as here:
        if here is None:
            assert set(name) & set("*[=")
            return
        row = pa.table({column.name: pa.nulls(1) for column in open_jobs.TABLE.columns})
        here.add(open_jobs.TABLE, row, Batch("q", 0))
        assert len(here.rows(here.read(open_jobs.TABLE))) == 1
