"""The simulated history keeps the contract."""

from __future__ import annotations

import duckdb
import pyarrow.parquet as pq
import pytest

from jobline_pipeline.history import look_at, plan
from jobline_pipeline.schemas import arrow_schema
from jobline_pipeline.simulate.run import write_shard


@pytest.fixture
def events(history):
    view = duckdb.connect()
    view.sql(f"CREATE VIEW events AS FROM read_parquet('{history}/events/*/*/*.parquet')")
    return lambda sql: view.sql(sql).fetchall()


def test_files_have_the_columns_of_the_contract(history):
    """In their order, and of their types."""
    for path in history.rglob("*.parquet"):
        assert pq.read_schema(path).equals(arrow_schema()), path


def test_files_are_good_and_repeat_nothing(history, load):
    """What a batch would do with them: read all, whole."""
    files = list(history.rglob("*.parquet"))
    seen = [look_at(str(p), p.stat().st_size, now_us=load.end_us) for p in files]
    made = plan(seen, {}, load.end_us)
    assert len(made.read) == len(files)
    assert all(piece.spans is None for piece in made.read)


def test_offsets_count_up_with_time(events):
    """`(shard, offset)` is unique and without holes, and time never goes back."""
    assert events("""
        SELECT count(*) FROM (SELECT shard, "offset", "at",
            lag("offset") OVER w AS before, lag("at") OVER w AS earlier
            FROM events WINDOW w AS (PARTITION BY shard ORDER BY "offset"))
        WHERE before + 1 != "offset" OR earlier > "at" """) == [(0,)]


def test_each_job_is_pushed_once_and_ends_once(events):
    """Jobs that are open at the end have no final event."""
    assert events("""
        SELECT max(pushes), min(pushes), max(ends), count(*), sum(ends) < count(*) FROM
            (SELECT count(*) FILTER (event = 'pushed') AS pushes, count(*) FILTER (final) AS ends
             FROM events GROUP BY job_id)""") == [(1, 1, 1, 2000, True)]


def test_endings_carry_their_times_in_order(events):
    """Pushed ≤ ready ≤ leased ≤ ended."""
    assert events("""
        SELECT count(*) FROM events WHERE leased_at IS NOT NULL
          AND NOT (pushed_at <= ready_at AND ready_at <= leased_at AND leased_at <= "at")""") == [
        (0,)
    ]


def test_same_seed_makes_the_same_rows(tmp_path, history, load):
    """So that a measurement can be repeated."""
    write_shard(tmp_path, load, 2)
    made = sorted(tmp_path.rglob("*.parquet"))
    assert made
    for path in made:
        same = history / path.relative_to(tmp_path)
        assert pq.read_table(path).equals(pq.read_table(same))
