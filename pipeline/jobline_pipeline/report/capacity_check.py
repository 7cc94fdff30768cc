"""Checks the answer of Erlang C: hands the busiest hour of each queue out again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobline_pipeline.tables.capacity import WAIT_MS, replay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Hours with more hand-outs are not replayed: it takes a microsecond or two for each.
ARRIVALS_MAX = 300_000

_BUSIEST = f"""
    WITH busiest AS (
        SELECT queue, max_by(struct(hour, workers_needed), workers_needed) AS one
        FROM capacity WHERE arrivals <= {ARRIVALS_MAX} GROUP BY queue)
    SELECT a.queue, b.one.workers_needed, unix_micros(a.ready_at) / 1000 AS ready_ms, a.run_ms
    FROM attempts a JOIN busiest b
      ON a.queue = b.queue AND a.ended_at >= b.one.hour
         AND a.ended_at < b.one.hour + INTERVAL 1 HOUR
    WHERE a.ready_at IS NOT NULL AND a.run_ms IS NOT NULL
    ORDER BY a.queue, a.ready_at"""


def replayed(spark: SparkSession) -> dict[str, dict[str, Any]]:
    """Returns by queue how many of a replayed hour would have waited too long with the workers
    that Erlang C asks for. Needs the views `capacity` and `attempts`.
    """
    rows = spark.sql(_BUSIEST).toPandas()
    found = {}
    for queue, hour in rows.groupby("queue", sort=False):
        arrivals = list(zip(hour["ready_ms"], hour["run_ms"], strict=True))
        waits = replay(arrivals, int(hour["workers_needed"].iloc[0]))
        late = sum(wait > WAIT_MS for wait in waits)
        found[str(queue)] = {
            "replayed": len(waits),
            "replayed_late_share": round(late / len(waits), 5),
        }
    return found
