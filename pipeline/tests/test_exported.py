"""All tables of a history that a real server exported while it was killed: nothing is lost, and
what was exported twice is there once.
"""

from __future__ import annotations

import asyncio

import pandas as pd
import pytest

from jobline_pipeline.store import Store
from jobline_pipeline.views import create_views
from tests.exported import QUEUES, events_of, export, repeat_rows
from tests.running import run

HAND_OUTS = ["completed", "retrying", "stalled", "released", "dead", "cancelled"]


@pytest.mark.parametrize(
    ("jobs", "kills", "events_min"),
    [
        pytest.param(8_000, 1, 20_000, id="small"),
        pytest.param(
            345_000, 5, 1_000_000, id="million", marks=[pytest.mark.fault, pytest.mark.timeout(900)]
        ),
    ],
)
def test_tables_say_what_the_server_and_pandas_say(spark, tmp_path, jobs, kills, events_min):
    """Totals by queue; every event, hand-out and job; times in sum."""
    made = asyncio.run(export(tmp_path, jobs=jobs, kills=kills))
    repeated = repeat_rows(made.history, 3)
    events = events_of(made.history)
    assert len(events) >= events_min
    assert repeated > 0

    counts = run(spark, made.history, tmp_path / "tables", files_a_batch=40)

    assert sum(batch.rows for batch in counts) == len(events)
    assert sum(batch.bad + batch.rows_apart for batch in counts) == 0
    create_views(Store(spark, str(tmp_path / "tables")))
    assert totals_of_tables(spark) == made.counts
    assert ids(spark, "SELECT DISTINCT job_id FROM jobs") >= set(made.accepted)
    assert spark.sql("SELECT count(*) FROM open_jobs").collect()[0][0] == 0
    same(spark, events)


def totals_of_tables(spark):
    """As the server counts: ended jobs by queue and state, from gold."""
    rows = spark.sql("""
        SELECT queue, sum(completed) completed, sum(dead) dead, sum(cancelled) cancelled
        FROM queue_minutes GROUP BY queue""").collect()
    return {row.queue: {k: v for k, v in row.asDict().items() if k != "queue"} for row in rows}


def ids(spark, question):
    return {row[0] for row in spark.sql(question).collect()}


def same(spark, events: pd.DataFrame) -> None:
    """Compares bronze, silver and gold with the same computed with pandas."""
    kinds = events.groupby("event").size().to_dict()
    assert dict(spark.sql("SELECT event, count(*) FROM events GROUP BY event").collect()) == kinds
    assert spark.sql("SELECT count(DISTINCT shard, offset) FROM events").collect()[0][0] == len(
        events
    )
    ended = events[events["event"].isin(HAND_OUTS) & events["leased_at"].notna()]
    wait = (ended["leased_at"] - ended["ready_at"]).dt.total_seconds().clip(lower=0)
    run_time = (ended["at"] - ended["leased_at"]).dt.total_seconds().clip(lower=0)
    theirs = pd.DataFrame({"queue": ended["queue"], "outcome": ended["event"], "w": wait})
    theirs = (
        theirs.assign(r=run_time)
        .groupby(["queue", "outcome"])
        .agg(many=("w", "size"), wait=("w", "sum"), run=("r", "sum"))
    )
    ours = spark.sql("""
        SELECT queue, outcome, count(*) many, sum(wait_ms) / 1000 wait, sum(run_ms) / 1000 run
        FROM attempts GROUP BY queue, outcome""").toPandas()
    pd.testing.assert_frame_equal(
        ours.set_index(["queue", "outcome"]).sort_index(), theirs.sort_index(), check_exact=False
    )
    final = events[events["final"].fillna(False).astype(bool)]
    jobs = final.groupby(["queue", "event"]).size().to_dict()
    rows = spark.sql("SELECT queue, outcome, count(*) FROM jobs GROUP BY queue, outcome").collect()
    assert {(row[0], row[1]): row[2] for row in rows} == jobs
    pushed = events[events["event"] == "pushed"].groupby("queue").size().to_dict()
    assert dict(spark.sql("SELECT queue, sum(opened) FROM queue_minutes GROUP BY 1").collect()) == (
        pushed
    )
    assert set(pushed) == set(QUEUES)
