"""Gold `capacity`: how many workers each queue needed in each hour, for a short wait.

Erlang C: with `c` workers, random arrivals, `a` = arrivals × run time, the chance to wait

    B(0) = 1,   B(k) = a·B(k-1) / (k + a·B(k-1)),   C = c·B(c) / (c - a·(1 - B(c)))

and the chance to wait longer than `t` is C·exp(-(c - a)·t / run time). The least `c` that keeps it
below 1 % is the answer. Run times that vary more than exponential ones make waits longer: `replay`
hands the hour's own arrivals and run times out again and says how long they would have waited.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from jobline_pipeline.tables.table import (
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIME,
    Column,
    Table,
    hour_of,
    share,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

# A wait counts as short if it is at most this, for this share of hand-outs.
WAIT_MS, WAIT_SHARE = 1000.0, 0.99
# An hour that would need more is given this many.
WORKERS_MAX = 5000

TABLE = Table(
    name="capacity",
    layer="gold",
    what=f"One row per queue and hour. A short wait is up to {WAIT_MS:g} ms for {WAIT_SHARE:.0%}.",
    columns=(
        Column("hour", TIME, "The begin of the hour."),
        Column("queue", STRING, "The queue."),
        Column("arrivals", LONG, "Hand-outs that ended in the hour, with those that failed."),
        Column("run_mean_ms", DOUBLE, "Their mean run time."),
        Column("offered", DOUBLE, "Workers that were busy on average (Erlangs)."),
        Column("variation", DOUBLE, "Standard deviation over mean of run times; 1 is exponential."),
        Column("workers_seen", LONG, "Workers that ended something in the hour."),
        Column("workers_needed", INT, "Workers for a short wait."),
        Column("busy_share", DOUBLE, "How busy these would be."),
        Column("wait_p99_ms", DOUBLE, "The 99 % quantile of waits, as it was."),
    ),
    key=("hour", "queue"),
    window="hour",
    grain=3600,
)


def make(attempts: DataFrame) -> DataFrame:
    """Takes `attempts` of whole hours."""
    ended = attempts.select(
        hour_of("ended_at").alias("hour"), "queue", "run_ms", "wait_ms", "worker"
    )
    sums = ended.groupBy("hour", "queue").agg(
        F.count("*").alias("arrivals"),
        F.avg("run_ms").alias("run_mean_ms"),
        (F.sum("run_ms") / 3_600_000).alias("offered"),
        F.stddev_pop("run_ms").alias("deviation"),
        F.approx_count_distinct("worker", 0.02).alias("workers_seen"),
        F.kll_sketch_agg_float(F.col("wait_ms").cast("float")).alias("waits"),
    )
    wait_p99 = F.kll_sketch_get_quantile_float("waits", F.lit(0.99)).cast("double")
    needed = sums.withColumn("workers_needed", _workers_needed())
    return TABLE.conform(
        needed.select(
            "*",
            share(F.col("deviation"), F.col("run_mean_ms")).alias("variation"),
            share(F.col("offered"), F.col("workers_needed")).alias("busy_share"),
            F.when(F.kll_sketch_get_n_float("waits") > 0, wait_p99).alias("wait_p99_ms"),
        )
    )


def _workers_needed() -> SparkColumn:
    """The least number of workers with short waits, for the columns `offered`, `run_mean_ms`."""
    load, run = F.col("offered"), F.greatest(F.col("run_mean_ms"), F.lit(0.001))
    # Far enough: ten times the square root above the load is more than any objective here needs.
    furthest = F.least(F.ceil(load + F.sqrt(load) * 10 + 10), F.lit(WORKERS_MAX)).cast("int")

    def step(state: SparkColumn, workers: SparkColumn) -> SparkColumn:
        blocked = load * state["blocked"] / (workers + load * state["blocked"])
        waits = workers * blocked / (workers - load * (1 - blocked))
        late = waits * F.exp(-(workers - load) * WAIT_MS / run)
        enough = (workers > load) & (late <= 1 - WAIT_SHARE)
        found = F.when(state["found"] > 0, state["found"]).when(enough, workers).otherwise(F.lit(0))
        return F.struct(blocked.alias("blocked"), found.cast("int").alias("found"))

    start = F.struct(F.lit(1.0).alias("blocked"), F.lit(0).alias("found"))
    counted = F.aggregate(F.sequence(F.lit(1), furthest), start, step)
    return F.when(counted["found"] > 0, counted["found"]).otherwise(furthest)


def replay(arrivals: Sequence[tuple[float, float]], workers: int) -> list[float]:
    """Hands jobs out again, first come first served, to `workers` workers; returns their waits.

    Each arrival is (when it became ready, how long it runs), in order and in the same unit.
    """
    free = [float("-inf")] * workers
    waits = []
    for ready, run in arrivals:
        begin = max(ready, heapq.heappop(free))
        heapq.heappush(free, begin + run)
        waits.append(begin - ready)
    return waits
