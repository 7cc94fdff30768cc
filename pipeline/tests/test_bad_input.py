"""Bad files and rows are set apart and counted; the others are read."""

from __future__ import annotations

import pyarrow as pa

from jobline_pipeline.store import Store
from jobline_pipeline.tables import events, files, jobs, open_jobs
from tests.rows import at, completed, pushed, write_events
from tests.running import run


def statuses(spark, root):
    rows = Store(spark, str(root)).read(files.TABLE).collect()
    return {row.path.rpartition("/")[2]: (row.status, row.rows, row.rows_apart) for row in rows}


def test_bad_files_are_set_apart(spark, tmp_path):
    """Truncated, foreign, misnamed, repeated, overlapping, future-dated: all in one batch."""
    history, root = tmp_path / "history", tmp_path / "tables"
    write_events(history, [pushed(n) for n in range(1, 11)])
    write_events(history, [pushed(n) for n in range(3, 8)])
    write_events(history, [pushed(n) for n in range(9, 13)])
    cut = write_events(history, [pushed(n) for n in range(20, 30)])
    cut.write_bytes(cut.read_bytes()[:-9])
    foreign = pa.schema([("offset", pa.int64())])
    write_events(history, [{"offset": 40}], schema=foreign)
    write_events(history, [pushed(50), pushed(51, at=at(86_400 * 365))])
    damaged = write_events(history, [pushed(n, name=f"n{n * 7919}") for n in range(1000, 3000)])
    data = bytearray(damaged.read_bytes())
    data[100:6000] = bytes(5900)
    damaged.write_bytes(data)
    (history / "events" / "notes.parquet").write_text("mine")

    counts = run(spark, history, root)

    assert statuses(spark, root) == {
        "0-1-10.parquet": ("taken", 10, 0),
        "0-3-7.parquet": ("repeated", 0, 0),
        "0-9-12.parquet": ("partly", 2, 0),
        "0-20-29.parquet": ("bad", 0, 0),
        "0-40-40.parquet": ("bad", 0, 0),
        "0-50-51.parquet": ("taken", 1, 1),
        "0-1000-2999.parquet": ("bad", 0, 0),
        "notes.parquet": ("bad", 0, 0),
    }
    assert [(c.taken, c.repeated, c.bad, c.rows, c.rows_apart) for c in counts] == [
        (3, 1, 4, 13, 1)
    ]
    offsets = [row.offset for row in Store(spark, str(root)).read(events.TABLE).collect()]
    assert sorted(offsets) == [*range(1, 13), 50]


def test_rows_in_any_order_of_a_file(spark, tmp_path):
    """Nothing counts on the order of offsets."""
    history, root = tmp_path / "history", tmp_path / "tables"
    lives = [event for n in (1, 2) for event in (pushed(n), completed(n + 10, n))]
    write_events(history, [lives[index] for index in (3, 0, 2, 1)])
    assert [(c.rows, c.bad) for c in run(spark, history, root)] == [(4, 0)]
    store = Store(spark, str(root))
    assert sorted(row.job_id for row in store.read(jobs.TABLE).collect()) == [1, 2]
    assert store.read(open_jobs.TABLE).count() == 0


def test_ends_that_come_before_their_pushes(spark, tmp_path):
    """Files in the wrong order: the end is read a batch before the push, and no job stays open."""
    history, root = tmp_path / "history", tmp_path / "tables"
    write_events(history, [completed(30, 1), completed(31, 2)])
    run(spark, history, root)
    write_events(history, [pushed(1), pushed(2), pushed(3)])
    run(spark, history, root)
    store = Store(spark, str(root))
    assert [row.job_id for row in store.read(open_jobs.TABLE).collect()] == [3]
    assert store.read(jobs.TABLE).count() == 2
