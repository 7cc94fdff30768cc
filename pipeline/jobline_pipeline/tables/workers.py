"""Gold `workers`: how busy each worker was in each hour, and how it did."""

from __future__ import annotations

from jobline_pipeline.schemas import FAILURES
from jobline_pipeline.sql import Rows, hour_of, one_of, share
from jobline_pipeline.tables.table import DOUBLE, LONG, STRING, TIME, Column, Table

TABLE = Table(
    name="workers",
    layer="gold",
    what="One row per worker and hour in which it ended an attempt.",
    columns=(
        Column("hour", TIME, "The begin of the hour."),
        Column("worker", STRING, "The worker."),
        Column("worker_version", STRING, "The last version that it reported."),
        Column("attempts", LONG, "Hand-outs that ended."),
        Column("completed", LONG, "Of these, completed."),
        Column("failed", LONG, "Of these, failed or lost."),
        Column("stalled", LONG, "Of these, lost: the lease ran out."),
        Column("busy_ms", DOUBLE, "The run time of them all."),
        Column("busy_share", DOUBLE, "busy_ms per hour: 2.5 is two and a half jobs at a time."),
        Column("per_minute", DOUBLE, "Hand-outs that ended, per minute."),
        Column("failure_rate", DOUBLE, "The share that failed or was lost."),
    ),
    key=("hour", "worker"),
    window="hour",
    grain=3600,
)


def make(attempts: Rows) -> Rows:
    """Takes `attempts` of whole hours. A run time belongs to the hour in which it ended."""
    return TABLE.made(
        f"""
        WITH ended AS (
          SELECT *, {hour_of("ended_at")} AS hour
          FROM {{attempts}} AS attempts
          WHERE worker IS NOT NULL
        ),
        sums AS (
          SELECT
            hour,
            worker,
            max_by(worker_version, (ended_at, `offset`)) AS worker_version,
            count(*) AS attempts,
            count_if(outcome = 'completed') AS completed,
            count_if(outcome IN {one_of(FAILURES)}) AS failed,
            count_if(outcome = 'stalled') AS stalled,
            sum(run_ms) AS busy_ms
          FROM ended
          GROUP BY hour, worker
        )
        SELECT
          *,
          busy_ms / 3.6e6 AS busy_share,
          attempts / 60 AS per_minute,
          {share("failed", "attempts")} AS failure_rate
        FROM sums
        """,
        attempts=attempts,
    )
